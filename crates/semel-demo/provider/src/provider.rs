//! The provider as a whole: ledger, settings, routes and webhooks.

use crate::api;
use crate::connection;
use crate::ledger::{Ledger, LedgerFailed, OpenError};
use crate::misbehaviour::Fates;
use crate::settings::Settings;
use crate::stall::Stalls;
use crate::state::ProviderState;
use crate::webhook;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A payment provider that is ready to serve.
///
/// ```
/// use payment_provider::{Provider, Settings};
/// use tokio::net::TcpListener;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let directory = tempfile::tempdir()?;
/// let bad_day = Settings { misbehave: "drop-after=0.1,error-after=0.05".parse()?, seed: 7, ..Settings::default() };
/// let provider = Provider::open(directory.path().join("provider.ledger"), bad_day)?;
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let serving = tokio::spawn(provider.serve(listener, async { drop(stopped.await) }));
/// drop(stop);
/// serving.await??;
/// # Ok(())
/// # }
/// ```
pub struct Provider {
    shared: Arc<ProviderState>,
}

impl Provider {
    /// Opens the ledger at `path`, or begins one.
    ///
    /// # Errors
    /// The settings contradict themselves, or the file cannot be used, is in use, or holds a line that is no entry.
    pub fn open(path: impl AsRef<Path>, settings: Settings) -> Result<Self, OpenError> {
        let settings = watch::channel(settings.check()?).0;
        let ledger = Ledger::open(path.as_ref())?;
        Ok(Self {
            shared: Arc::new(ProviderState {
                ledger,
                settings,
                fates: Fates::default(),
                stalls: Stalls::default(),
            }),
        })
    }

    /// Serves until `stop` comes, then lets what has begun come to its end, for a few seconds at most.
    ///
    /// Webhooks that nobody has taken by then are delivered by the next process that serves this ledger.
    ///
    /// # Errors
    /// The ledger cannot be written any more.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), LedgerFailed> {
        let Self { shared } = self;
        // A set, because it ends its tasks when it is dropped: who gives this future up lets go of the ledger.
        let mut webhooks = JoinSet::new();
        webhooks.spawn(webhook::deliver(Arc::clone(&shared)));
        let mut durable = shared.ledger.durable();
        let (stopping, stopped) = watch::channel(false);
        let connections = connection::serve(listener, api::routes(Arc::clone(&shared)), stopped);
        let end = async {
            let end = tokio::select! {
                () = stop => Ok(()),
                Ok(failed) = durable.wait_for(Result::is_err) => failed.clone().map(|_| ()),
            };
            // Nobody waits for a stall on the way out.
            stopping.send_replace(true);
            shared.stalls.let_go();
            end
        };
        let ((), end) = tokio::join!(connections, end);
        webhooks.shutdown().await;
        // Writes what is left: a moment, and the last one.
        shared.ledger.close();
        end
    }
}
