//! The service as a whole: database, layer and routes.

use crate::account::Account;
use crate::api::{Shared, routes};
use crate::database::{Database, DatabaseError};
use crate::demo::Demo;
use crate::fail_point::FailPoint;
use crate::provider::ProviderOptions;
use axum::Router;
use semel::{Engine, EngineOptions, Policy, Stale};
use semel_tower::{IdempotencyLayer, InvalidProtection, Protection};
use std::future::Future;
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
    /// Who moves the money. Default: nobody, and a payment is an entry in the books.
    pub provider: Option<ProviderOptions>,
    /// Whether clients may make handlers slow with `X-Demo-Delay` and `X-Demo-Hold`, and the provider misbehave with
    /// `X-Provider-Mode`. Default: no, and never in production.
    pub demo_delays: bool,
    /// The [fail point](crate::FAIL_POINTS) at which the first request goes no further. Default: none, and never in production.
    pub fail_point: Option<String>,
}

impl Default for PaymentsOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            timeout: Duration::from_secs(25),
            provider: None,
            demo_delays: false,
            fail_point: None,
        }
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
    /// Opens the database, or makes its tables, and sets the routes up: `payments.db`, `sqlite:payments.db` or `postgres://…`.
    ///
    /// # Errors
    /// The database cannot be used, or the options contradict each other.
    pub async fn open(database: &str, options: PaymentsOptions) -> Result<Self, StartError> {
        let database = Database::open(database).await?;
        let demo = if options.demo_delays { Demo::enabled() } else { Demo::default() };
        // With a provider the work is built of recovery points, and whoever takes over goes on after the last one. Without one all
        // that a payment does is in its completing transaction, and `Stale::Rerun` would be right as well. It stays at `Unknown`:
        // the day that somebody adds a call to the handler, nothing would fail but the books.
        let stale = if options.provider.is_some() { Stale::Resume } else { Stale::Unknown };
        let protection = Protection {
            policy: Arc::new(Policy { lease: options.lease, stale, ..Policy::default() }),
            timeout: options.timeout,
            ..Protection::default()
        };
        let store = database.store();
        let layer =
            IdempotencyLayer::over(Engine::with_options(Arc::clone(&store), EngineOptions::default()))
                // A key means something within one account only. Here a header names it; a real service asks its own authentication.
                .tenant(|request| Account::of(&request.headers).map(|account| account.as_str().to_owned()))
                .protect_writes(protection)?;
        let shared = Shared {
            database: database.clone(),
            store,
            provider: options.provider.map(Arc::new),
            demo: demo.clone(),
            fail_point: FailPoint::armed(options.fail_point),
        };
        let router = routes(shared)
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
        self.database.close().await;
        Ok(())
    }
}
