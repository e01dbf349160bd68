//! `semel gateway`: any service, in any language, behind one command.

use crate::interrupts::Interrupts;
use clap::Args;
use http::Uri;
use semel::{Engine, EngineOptions, MemoryStore, Store};
use semel_gateway::proxy::{InvalidUpstream, Upstream};
use semel_gateway::{Gateway, Limits, Stopped};
use semel_sqlite::SqliteStore;
use semel_tower::{IdempotencyLayer, InvalidProtection, KeyRequirement, Protection};
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Put a service behind Semel: every write with an Idempotency-Key happens once.
///
/// Passes requests on to the service and its answers back. A POST or PATCH with
/// an Idempotency-Key is protected: it is executed once, and its retries get the
/// same answer. Everything else passes untouched.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel gateway --upstream http://localhost:3000
  semel gateway --upstream http://localhost:3000 --require-key
  semel gateway --config semel.toml

SIGTERM or Ctrl-C: accepts nothing more and lets what is under way end; a second one ends at once.
Exit status: 0 if everything under way had ended, 1 if not or if it could not start."
)]
pub(crate) struct Arguments {
    /// The service, such as http://localhost:3000.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    upstream: Option<Uri>,

    /// Where clients are served.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Where the admin API, health and metrics are served.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin_listen: SocketAddr,

    /// Where it is remembered what was done: sqlite:FILE, or memory: for trying things out.
    #[arg(long, value_name = "URL", default_value = "sqlite:semel.db")]
    store: String,

    /// Refuse POST and PATCH without a key.
    #[arg(long)]
    require_key: bool,

    /// Everything from a file instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upstream", "listen", "admin_listen", "store", "require_key"])]
    config: Option<PathBuf>,
}

/// Why the gateway could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum GatewayError {
    #[error("--config is not read yet: use the flags (`semel help gateway`)")]
    NoConfigYet,
    #[error("--upstream")]
    Upstream(#[from] InvalidUpstream),
    #[error("the store `{0}` is not known: write sqlite:FILE or memory:")]
    UnknownStore(String),
    #[error("the store `{0}` cannot be opened")]
    Store(String, #[source] semel_sqlite::OpenError),
    #[error("the protection cannot keep its promise")]
    Protection(#[from] InvalidProtection),
    #[error("cannot listen on {0} ({1}): choose another address with --listen, such as --listen 127.0.0.1:0")]
    Listen(SocketAddr, std::io::Error),
    #[error("the gateway's own machinery failed")]
    Machinery(#[from] std::io::Error),
}

/// Runs the gateway.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, GatewayError> {
    let is_terminal = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(is_terminal).init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(arguments));
    // What is still under way was given up on.
    runtime.shutdown_background();
    ended
}

async fn serve(arguments: Arguments) -> Result<ExitCode, GatewayError> {
    let (stop, force) = signals()?;
    let (Some(upstream), None) = (arguments.upstream, arguments.config) else {
        return Err(GatewayError::NoConfigYet);
    };
    let limits = Limits::default();
    let service = Upstream::new(&upstream, &limits)?;
    let key = if arguments.require_key { KeyRequirement::Required } else { KeyRequirement::Optional };
    let engine = Engine::with_options(open(&arguments.store).await?, EngineOptions::default());
    let layer = IdempotencyLayer::over(engine).protect_writes(Protection { key, ..Protection::default() })?;
    let unheard = |error| GatewayError::Listen(arguments.listen, error);
    let listener = TcpListener::bind(arguments.listen).await.map_err(unheard)?;
    let address = listener.local_addr()?;
    writeln!(
        anstream::stdout(),
        "semel gateway: http://{address} protects {upstream}, and remembers in {}",
        arguments.store
    )?;
    Ok(match Gateway::new(&layer, service, limits).run(listener, stop, force).await {
        Stopped::Drained => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

async fn open(url: &str) -> Result<Arc<dyn Store>, GatewayError> {
    match url.split_once(':') {
        Some(("memory", "")) => {
            tracing::warn!("the store is in memory: what was done is forgotten when the gateway ends");
            Ok(Arc::new(MemoryStore::new()))
        }
        Some(("sqlite", file)) if !file.is_empty() => {
            let store = SqliteStore::open(file).await;
            Ok(Arc::new(store.map_err(|error| GatewayError::Store(url.to_owned(), error))?))
        }
        _ => Err(GatewayError::UnknownStore(url.to_owned())),
    }
}

/// The first signal to end, and the second.
fn signals() -> std::io::Result<(impl Future<Output = ()>, impl Future<Output = ()>)> {
    let mut interrupts = Interrupts::listen()?;
    let (first, stop) = oneshot::channel();
    let (second, force) = oneshot::channel();
    tokio::spawn(async move {
        interrupts.come().await;
        let _ = first.send(());
        interrupts.come().await;
        let _ = second.send(());
    });
    Ok((async { drop(stop.await) }, async { drop(force.await) }))
}
