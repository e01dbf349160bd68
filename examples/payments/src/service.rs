//! The service as a whole: database, layer, routes, and the worker beside them.

use crate::account::Account;
use crate::api::{Shared, WEBHOOK_SOURCE, keep_name, routes, webhook_routes};
use crate::database::{Database, DatabaseError};
use crate::demo::Demo;
use crate::fail_point::FailPoint;
use crate::provider::ProviderOptions;
use crate::settling::{Settler, SettlingOptions};
use crate::telling;
use async_nats::jetstream::Context;
use axum::Router;
use axum::middleware::map_request;
use semel::{Engine, EngineOptions, Policy, Stale};
use semel_events::sink::InvalidWebhook;
use semel_tower::{IdempotencyLayer, InvalidProtection, Protection};
use semel_worker::{OperationRules, Rules, WebhookIntake, Worker, WorkerOptions};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

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
    /// How doubt about the provider is settled.
    pub settling: SettlingOptions,
    /// The NATS server that others are told through, such as `nats://127.0.0.1:4222`: every payment that completes is published there
    /// as `payments.PaymentCreated`. Default: none, and nobody is told.
    pub nats: Option<String>,
    /// Whether nobody but a gateway reaches the service: its `Semel-Operation-Id` is then believed, and it may ask about operations
    /// under its own name. Default: no.
    pub behind_gateway: bool,
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
            settling: SettlingOptions::default(),
            nats: None,
            behind_gateway: false,
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
    /// The broker's address is invalid.
    #[error("the NATS server's address is invalid; it looks like nats://127.0.0.1:4222")]
    Broker(#[from] async_nats::ConnectError),
    /// The partner's address is invalid.
    #[error(transparent)]
    Partner(#[from] InvalidWebhook),
}

/// A payment service that is ready to serve.
pub struct PaymentsService {
    database: Database,
    layer: IdempotencyLayer,
    worker: Worker,
    router: Router,
    broker: Option<Context>,
}

impl PaymentsService {
    /// Opens the database, or makes its tables, and sets the routes up: `payments.db`, `sqlite:payments.db` or `postgres://…`.
    ///
    /// # Errors
    /// The database cannot be used, or the options contradict each other.
    pub async fn open(database: &str, options: PaymentsOptions) -> Result<Self, StartError> {
        let broker = match &options.nats {
            Some(nats) => Some(telling::connect(nats).await?),
            None => None,
        };
        let database = Database::open(database, broker.is_some()).await?;
        let demo = if options.demo_delays { Demo::enabled() } else { Demo::default() };
        // With a provider the work is built of recovery points, and whoever takes over goes on after the last one. Without one all
        // that a payment does is in its completing transaction, and `Stale::Rerun` would be right as well. It stays at `Unknown`:
        // the day that somebody adds a call to the handler, nothing would fail but the books.
        let stale = if options.provider.is_some() { Stale::Resume } else { Stale::Unknown };
        let policy = Policy { lease: options.lease, stale, ..Policy::default() };
        let provider = options.provider.map(Arc::new);
        let settler = provider.clone().map(|provider| Settler::new(database.clone(), provider));
        // Requests and worker go by the same rules: whichever finds a lease over decides what becomes of it.
        let rules = match &settler {
            Some(settler) => settler.clone().rules(&options.settling, policy),
            None => OperationRules::new(policy),
        };
        let protection = Protection {
            policy: Arc::clone(&rules.policy),
            timeout: options.timeout,
            ..Protection::default()
        };
        let store = database.store();
        let engine = Engine::with_options(Arc::clone(&store), EngineOptions::default());
        let layer = IdempotencyLayer::with_engine(engine.clone())
            // A key means something within one account only. Here a header names it; a real service asks its own authentication.
            .tenant(|request| Account::of(&request.headers).map(|account| account.as_str().to_owned()))
            .protect_writes(protection)?;
        let everything: Rules = Arc::new(move |_| Some(rules.clone()));
        let others = Arc::clone(&everything);
        let worker = Worker::new(engine.clone(), WorkerOptions::default())
            .other_operations(move |operation| others(operation));
        let shared = Shared {
            database: database.clone(),
            store,
            provider,
            demo: demo.clone(),
            fail_point: FailPoint::armed(options.fail_point),
        };
        let secrets = options.settling.webhook_secrets;
        let webhooks = settler.filter(|_| !secrets.is_empty()).map(|settler| {
            webhook_routes(WebhookIntake::new(engine, everything).source(WEBHOOK_SOURCE, secrets), settler)
        });
        let mut protected = routes(shared).layer(layer.clone());
        if options.behind_gateway {
            protected = protected.layer(map_request(keep_name));
        }
        // After the layer, and so outside of it: these need no key.
        let router = protected.merge(demo.routes()).merge(webhooks.unwrap_or_default());
        Ok(Self { database, layer, worker, router, broker })
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
        let (rest, resting) = watch::channel(());
        let working = tokio::spawn(self.worker.run(until_dropped(resting.clone())));
        let telling = self.broker.map(|broker| {
            tokio::spawn(telling::publish(self.database.outbox(), broker, until_dropped(resting)))
        });
        axum::serve(listener, self.router).with_graceful_shutdown(stop).await?;
        // A client that hung up has left its request behind: the connection is gone, the work is not.
        self.layer.engine().drained().await;
        drop(rest);
        // Whoever was asked has a deadline of its own.
        let _ended = working.await;
        if let Some(telling) = telling {
            let _ended = telling.await;
        }
        self.database.close().await;
        Ok(())
    }
}

/// For what runs beside the requests: ends when `serve` has no more for it to do.
pub(crate) async fn until_dropped(mut sender: watch::Receiver<()>) {
    drop(sender.changed().await);
}
