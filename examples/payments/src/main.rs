//! The payment service as a process.

use clap::{Args, Parser, Subcommand, ValueEnum};
use payments::{
    BOOKKEEPING_FAIL_POINTS, Bookkeeping, BookkeepingOptions, FAIL_POINTS, PartnerOptions, PaymentsOptions,
    PaymentsService, ProviderOptions, ProviderPromise, SettlingOptions,
};
use semel_worker::{InvalidSecret, WebhookSecret};
use std::error::Error;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Serves payments that happen once, however often they are asked for.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Keep the books of payments that the service tells of: a ledger entry, a receipt and word to a partner, once each
    Consume(Consume),
}

#[derive(Args)]
struct Consume {
    /// The NATS server that tells of payments
    #[arg(long, env = "PAYMENTS_NATS", hide_env_values = true)]
    nats: String,
    /// books.db, sqlite:books.db or postgres://user:password@host/database; never the service's own
    #[arg(long, env = "BOOKS_DATABASE", default_value = "books.db", hide_env_values = true)]
    database: String,
    /// The directory that receipts are written to
    #[arg(long, env = "BOOKS_RECEIPTS", default_value = "receipts")]
    receipts: PathBuf,
    /// The partner who is notified of payments, such as http://127.0.0.1:9200/payments
    #[arg(long, env = "BOOKS_PARTNER", requires = "partner_secret")]
    partner: Option<String>,
    /// What the partner's webhooks are signed with (whsec_…)
    #[arg(long, env = "BOOKS_PARTNER_SECRET", hide_env_values = true, value_parser = secret)]
    partner_secret: Option<WebhookSecret>,
    /// How long this process may be silent before the broker, and another instance, believe it dead, in milliseconds
    #[arg(long, env = "BOOKS_LEASE_MS", default_value_t = 30_000)]
    lease_ms: u64,
    /// Where the first message goes no further, for a test that kills the process there
    #[arg(long, env = "BOOKS_FAIL_POINT", value_parser = BOOKKEEPING_FAIL_POINTS, hide = true)]
    fail_point: Option<String>,
}

#[derive(Args)]
struct Serve {
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
    /// Tell others of payments through this NATS server, such as nats://127.0.0.1:4222; without one nobody is told
    #[arg(long, env = "PAYMENTS_NATS", hide_env_values = true)]
    nats: Option<String>,
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
    match arguments.command {
        Some(Command::Consume(consume)) => keep_books(consume).await,
        None => serve(arguments.serve).await,
    }
}

async fn keep_books(arguments: Consume) -> Result<(), Box<dyn Error>> {
    let partner = arguments.partner.zip(arguments.partner_secret);
    let lease = Duration::from_millis(arguments.lease_ms);
    let options = BookkeepingOptions {
        nats: arguments.nats,
        receipts: arguments.receipts,
        partner: partner.map(|(url, secret)| PartnerOptions { url, secret }),
        ack_wait: lease,
        lease,
        fail_point: arguments.fail_point,
    };
    let bookkeeping = Bookkeeping::open(&arguments.database, options).await?;
    writeln!(std::io::stdout(), "payments keeps the books")?;
    bookkeeping.run(ended()?).await?;
    Ok(())
}

/// Ready when the process is told to end.
fn ended() -> std::io::Result<impl Future<Output = ()>> {
    let (mut end, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = end.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

async fn serve(arguments: Serve) -> Result<(), Box<dyn Error>> {
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
        nats: arguments.nats,
        behind_gateway: arguments.behind_gateway,
        demo_delays: arguments.demo,
        fail_point: arguments.fail_point,
    };
    let service = PaymentsService::open(&arguments.database, options).await?;
    let listener = TcpListener::bind(arguments.listen).await?;
    writeln!(std::io::stdout(), "payments listens on http://{}", listener.local_addr()?)?;
    service.serve(listener, ended()?).await?;
    Ok(())
}
