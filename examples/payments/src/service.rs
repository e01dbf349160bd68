//! The service as a whole: database, layer and routes.

use crate::account::Account;
use crate::api::{Shared, routes};
use crate::database::{Database, DatabaseError};
use crate::demo::Demo;
use axum::Router;
use semel::Policy;
use semel_tower::{IdempotencyLayer, InvalidProtection, Protection};
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How a payment service runs.
#[derive(Clone, Debug)]
pub struct PaymentsOptions {
    /// How long a handler is believed to be at work without a sign of life. A handler that lives prolongs it by itself, so that
    /// this is how long it takes to notice that a process has died. Default 30 s.
    pub lease: Duration,
    /// How long a client waits for its handler before it is told that the outcome is unknown. Shorter than the lease.
    /// Default 25 s.
    pub timeout: Duration,
    /// Whether clients may make handlers slow with `X-Demo-Delay` and `X-Demo-Hold`. Default: no, and never in production.
    pub demo_delays: bool,
}

impl Default for PaymentsOptions {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), timeout: Duration::from_secs(25), demo_delays: false }
    }
}

/// Why the service did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The database was not opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The options contradict each other.
    #[error(transparent)]
    Options(#[from] InvalidProtection),
}

/// A payment service that is ready to serve.
pub struct PaymentsService {
    database: Database,
    layer: IdempotencyLayer,
    router: Router,
}

impl PaymentsService {
    /// Opens the file at `path`, or makes it, and sets the routes up.
    ///
    /// # Errors
    /// The file cannot be used, or the options contradict each other.
    pub async fn open(path: impl AsRef<Path>, options: PaymentsOptions) -> Result<Self, StartError> {
        let database = Database::open(path.as_ref()).await?;
        let demo = if options.demo_delays { Demo::enabled() } else { Demo::default() };
        // `stale` is left at `Unknown`. Today all that a payment does is in its completing transaction, and `Stale::Rerun`
        // would be right as well: a payment whose process died would be made by the next retry. The day that somebody adds a
        // call to a provider it would be wrong, and nothing would fail but the books.
        let protection = Protection {
            policy: Arc::new(Policy { lease: options.lease, ..Policy::default() }),
            timeout: options.timeout,
            ..Protection::default()
        };
        let layer = IdempotencyLayer::new(database.store.clone())
            // A key means something within one account only. Here a header names it; a real service asks its own authentication.
            .tenant(|request| Account::of(&request.headers).map(|account| account.as_str().to_owned()))
            .protect_writes(protection)?;
        let router = routes(Shared { database: database.clone(), demo: demo.clone() })
            .layer(layer.clone())
            // After the layer, and so outside of it: letting a handler go needs no key.
            .merge(demo.routes());
        Ok(Self { database, layer, router })
    }

    /// Serves until `stop` comes, then lets what has begun come to its end.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        axum::serve(listener, self.router).with_graceful_shutdown(stop).await?;
        // A client that hung up has left its request behind: the connection is gone, the work is not.
        self.layer.engine().drained().await;
        self.database.store.close().await;
        Ok(())
    }
}
