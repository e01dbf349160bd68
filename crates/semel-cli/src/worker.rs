//! `semel worker`: what is done beside the requests, as a process of its own.

use crate::hangups::Hangups;
use crate::interrupts::Interrupts;
use crate::logs::log_as;
use crate::output::announce;
use clap::Args;
use semel_gateway::config::LoadError;
use semel_gateway::{Config, StartError, Working};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Watch leases, settle doubt and close windows, beside gateways on the same store
///
/// A gateway does this by itself. A worker does it without serving anybody: for gateways
/// whose configuration says `in_gateway = false` under [worker], or so that it goes on
/// while none of them runs. There may be any number of workers: for each operation one
/// of them acts, and any may be killed at any time.
///
/// It reads the file of the gateways: the store, the routes with their [route.reconcile],
/// [[webhook]] and [worker]. It listens nowhere, unless --admin-listen says where: then it
/// serves health, metrics, the admin API and webhooks there, by the token of the file.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel worker --config semel.toml
  semel worker --config semel.toml --admin-listen 127.0.0.1:8082
  semel check-config semel.toml         see what is wrong with the file first

SIGTERM or Ctrl-C: asks nobody anything more and waits for answers that are due; a second one ends at once.
SIGHUP: reads the file anew, as `semel reload` does.
Exit status: 0 if it ended so, 1 if it was ended at once or could not start."
)]
pub(crate) struct Arguments {
    /// The gateways' configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// Where health, metrics and the admin API are served; nowhere without it.
    #[arg(long, value_name = "ADDRESS")]
    admin_listen: Option<SocketAddr>,
}

/// Why the worker could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum WorkerError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error("{0}: a worker of its own needs a store that its gateways share, sqlite:FILE or postgres://…")]
    NotShared(String),
    #[error(
        "--admin-listen {0} is open to the network, and the file has no [admin] token: set one, or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("the worker's own machinery failed")]
    Machinery(#[from] std::io::Error),
}

/// Runs the worker.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, WorkerError> {
    let config = Config::from_file(&arguments.config)?;
    if !config.store.is_durable() {
        return Err(WorkerError::NotShared(config.store.to_string()));
    }
    if let Some(address) = arguments.admin_listen
        && config.admin.token.is_none()
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
    let (stop, force) = Interrupts::listen()?.first_and_second();
    let hangups = Hangups::listen()?;
    let scheme = if config.admin.tls.is_some() { "https" } else { "http" };
    let working = Working::start(config, arguments.admin_listen).await?.reading(arguments.config.clone());
    hangups.reload(working.reload());
    if let Some(address) = working.admin_address() {
        announce(format!("semel worker, admin API: {scheme}://{address}\n"));
    }
    tokio::select! {
        () = working.run(stop) => Ok(ExitCode::SUCCESS),
        () = force => Ok(ExitCode::FAILURE),
    }
}
