//! `semel worker`: background work as a process of its own.

use crate::logs::log_as;
use crate::output::announce;
use crate::shutdown::ShutdownSignals;
use crate::sighup::Sighup;
use clap::Args;
use semel_gateway::config::LoadError;
use semel_gateway::{Config, StartError, WorkerProcess};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run background work alone: watch leases, settle doubt, purge expired records
///
/// A gateway does this work itself. Use a worker for gateways with `in_gateway = false`
/// under [worker], or to continue while no gateway runs. Any number of workers may share
/// a store: for each operation one of them acts, and any may be killed at any time.
///
/// A worker reads the gateways' file: the store, the routes with their [route.reconcile],
/// [[webhook]] and [worker]. With --admin-listen it serves health, metrics, the admin API
/// and webhooks, under the file's token; without it, it does not listen.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel worker --config semel.toml
  semel worker --config semel.toml --admin-listen 127.0.0.1:8082
  semel check-config semel.toml         check the file first

SIGTERM or Ctrl-C: start no more polls and wait for those in flight; a second signal stops at once.
SIGHUP: reload the file, as `semel reload` does.
Exit status: 0 after a clean stop, 1 if it was stopped at once or could not start."
)]
pub(crate) struct Arguments {
    /// The gateways' configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Address for health, metrics and the admin API; without it, none is opened.
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
}

/// Why the worker could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum WorkerError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error(
        "{0}: a worker needs a store that it shares with its gateways, sqlite:FILE, postgres://… or dynamodb://…"
    )]
    NotShared(String),
    #[error(
        "--admin-listen {0} is open to the network, and the file has no [admin] token: set one, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("system error")]
    Machinery(#[from] std::io::Error),
}

/// Runs the worker.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, WorkerError> {
    let config = Config::from_file(&arguments.config)?;
    if !config.store.is_durable() {
        return Err(WorkerError::NotShared(config.store.to_string()));
    }
    if let Some(address) = arguments.admin_listen
        && config.admin.people.is_empty()
        && !address.ip().is_loopback()
    {
        return Err(WorkerError::Open(address));
    }
    let _logs = log_as(&config.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(work(config, arguments));
    // Whoever was asked and did not answer is asked again by the next one.
    runtime.shutdown_background();
    ended
}

async fn work(config: Config, arguments: &Arguments) -> Result<ExitCode, WorkerError> {
    let (stop, force) = ShutdownSignals::listen()?.first_and_second();
    let sighup = Sighup::listen()?;
    let scheme = if config.admin.tls.is_some() { "https" } else { "http" };
    let working =
        WorkerProcess::start(config, arguments.admin_listen).await?.reading(arguments.config.clone());
    sighup.reload(working.reload());
    if let Some(address) = working.admin_address() {
        announce(format!("semel worker, admin API: {scheme}://{address}\n"));
    }
    tokio::select! {
        () = working.run(stop) => Ok(ExitCode::SUCCESS),
        () = force => Ok(ExitCode::FAILURE),
    }
}
