//! The payment service as a process.

use clap::{Parser, ValueEnum};
use payments::{
    FAIL_POINTS, PaymentsOptions, PaymentsService, ProviderOptions, ProviderPromise, SettlingOptions,
};
use semel_relay::{InvalidSecret, WebhookSecret};
use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves payments that happen once, however often they are asked for.
#[derive(Parser)]
struct Arguments {
    /// Where to listen; port 0 takes any
    #[arg(long, env = "PAYMENTS_LISTEN", default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// payments.db, sqlite:payments.db or postgres://user:password@host/database
    #[arg(long, env = "PAYMENTS_DATABASE", default_value = "payments.db", hide_env_values = true)]
    database: String,
    /// The provider that moves the money, such as http://127.0.0.1:9100; without one a payment is an entry in the books
    #[arg(long, env = "PAYMENTS_PROVIDER")]
    provider: Option<axum::http::Uri>,
    /// What the provider can be relied on for, once nobody knows whether a call reached it
    #[arg(long, env = "PAYMENTS_PROVIDER_PROMISE", value_enum, default_value = "deduplicates")]
    promise: Promise,
    /// Ask the provider about unknown outcomes, the first time after so many milliseconds; it has to refuse late attempts of what
    /// it says to know nothing of
    #[arg(long, env = "PAYMENTS_ASK_EVERY_MS", requires = "provider")]
    ask_every_ms: Option<u64>,
    /// Take in what the provider tells at /webhooks/provider, signed with this secret (whsec_…); may be given twice
    #[arg(long, env = "PAYMENTS_WEBHOOK_SECRET", hide_env_values = true, value_parser = secret, requires = "provider")]
    webhook_secret: Vec<WebhookSecret>,
    /// Only a gateway reaches this service: believe its Semel-Operation-Id
    #[arg(long)]
    behind_gateway: bool,
    /// How long a process that says nothing is believed to be at work, in milliseconds
    #[arg(long, env = "PAYMENTS_LEASE_MS", default_value_t = 30_000)]
    lease_ms: u64,
    /// How long one call to the provider may take, in milliseconds
    #[arg(long, env = "PAYMENTS_PROVIDER_TIMEOUT_MS", default_value_t = 5_000)]
    provider_timeout_ms: u64,
    /// Let clients make handlers slow and the provider misbehave (never in production)
    #[arg(long)]
    demo: bool,
    /// Where the first request goes no further, for a test that kills the process there
    #[arg(long, env = "PAYMENTS_FAIL_POINT", value_parser = FAIL_POINTS, hide = true)]
    fail_point: Option<String>,
}

fn secret(text: &str) -> Result<WebhookSecret, InvalidSecret> {
    WebhookSecret::parse(text)
}

#[derive(Clone, Copy, ValueEnum)]
enum Promise {
    /// One identity is charged once, however often it is sent
    Deduplicates,
    /// It says what became of an identity, and refuses late attempts of one that it knows nothing of
    CanBeAsked,
    /// Neither: at most one charge, and without an answer the outcome is unknown
    Neither,
}

impl From<Promise> for ProviderPromise {
    fn from(promise: Promise) -> Self {
        match promise {
            Promise::Deduplicates => Self::Deduplicates,
            Promise::CanBeAsked => Self::CanBeAsked,
            Promise::Neither => Self::Neither,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let lease = Duration::from_millis(arguments.lease_ms);
    let timeout = Duration::from_millis(arguments.provider_timeout_ms);
    let options = PaymentsOptions {
        lease,
        // Below the lease, as it has to be.
        timeout: lease * 5 / 6,
        provider: arguments
            .provider
            .map(|url| ProviderOptions { timeout, ..ProviderOptions::new(url, arguments.promise.into()) }),
        settling: SettlingOptions {
            ask_every: arguments.ask_every_ms.map(Duration::from_millis),
            webhook_secrets: arguments.webhook_secret,
        },
        behind_gateway: arguments.behind_gateway,
        demo_delays: arguments.demo,
        fail_point: arguments.fail_point,
    };
    let service = PaymentsService::open(&arguments.database, options).await?;
    let listener = TcpListener::bind(arguments.listen).await?;
    writeln!(std::io::stdout(), "payments listens on http://{}", listener.local_addr()?)?;
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    service
        .serve(listener, async move {
            tokio::select! {
                _ = end.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await?;
    Ok(())
}
