//! `semel gateway`: any service, in any language, behind one command.

use crate::logs::log_as;
use crate::output::announce;
use crate::shutdown::ShutdownSignals;
use crate::sighup::Sighup;
use clap::Args;
use semel_gateway::config::{LoadError, QuickStart, QuickStartErrors};
use semel_gateway::{Config, GatewayProcess, StartError, Stopped};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the gateway in front of a service: a write with an Idempotency-Key happens once.
///
/// The gateway is a reverse proxy. A POST or PATCH with an Idempotency-Key is
/// protected: it is executed once, and its retries get the same answer. All other
/// requests pass unchanged.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel gateway --upstream http://localhost:3000
  semel gateway --upstream http://localhost:3000 --require-key
  semel gateway --config semel.toml

SIGTERM or Ctrl-C: stop accepting, finish requests in flight; a second signal stops at once.
SIGHUP, with --config: reload the file, as `semel reload` does.
Exit status: 0 if all requests in flight finished, 1 if not or if the gateway could not start."
)]
pub(crate) struct Arguments {
    /// The service, such as http://localhost:3000.
    #[arg(long, value_name = "URL", required_unless_present = "config")]
    upstream: Option<String>,

    /// Address to serve clients on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,

    /// Address for the admin API, health and metrics.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    admin_listen: String,

    /// Store for keys and answers: sqlite:FILE, postgres://…, dynamodb://…, or memory: (lost on restart).
    #[arg(long, value_name = "URL", default_value = "sqlite:semel.db")]
    store: String,

    /// Refuse POST and PATCH without a key.
    #[arg(long)]
    require_key: bool,

    /// Token for the admin API, or env:NAME for the variable that holds it [env: SEMEL_ADMIN_TOKEN].
    ///
    /// Without a token the admin API is read-only, and outcomes cannot be settled. Other users
    /// of this machine can see flags in the process list: use the variable.
    #[arg(long, value_name = "TOKEN", verbatim_doc_comment)]
    admin_token: Option<String>,

    /// Read all settings from this file instead of flags.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upstream", "listen", "admin_listen", "store", "require_key", "admin_token"])]
    config: Option<PathBuf>,
}

/// The variable that `semel operations` reads its token from, too.
const ADMIN_TOKEN: &str = "SEMEL_ADMIN_TOKEN";

/// Why the gateway could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum GatewayError {
    #[error(transparent)]
    Config(#[from] LoadError),
    #[error(transparent)]
    Flags(#[from] QuickStartErrors),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("system error")]
    Machinery(#[from] std::io::Error),
}

/// Runs the gateway.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, GatewayError> {
    let config = match (&arguments.config, arguments.upstream) {
        (Some(file), _) => Config::from_file(file)?,
        (None, upstream) => Config::from_flags(&QuickStart {
            listen: arguments.listen,
            admin_listen: arguments.admin_listen,
            store: arguments.store,
            require_key: arguments.require_key,
            admin_token: arguments.admin_token.or_else(token_of_environment),
            ..QuickStart::before(upstream.unwrap_or_default())
        })?,
    };
    let _logs = log_as(&config.logs)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(config, arguments.config));
    // Requests still in flight are abandoned.
    runtime.shutdown_background();
    ended
}

/// Not a variable that clap reads: with `--config` it would contradict the file, and there it is the operator's own.
fn token_of_environment() -> Option<String> {
    let is_set = std::env::var_os(ADMIN_TOKEN).is_some_and(|token| !token.is_empty());
    is_set.then(|| format!("env:{ADMIN_TOKEN}"))
}

async fn serve(config: Config, file: Option<PathBuf>) -> Result<ExitCode, GatewayError> {
    let (stop, force) = ShutdownSignals::listen()?.first_and_second();
    // Without a config file there is nothing to reload, and SIGHUP from a closed terminal ends the process.
    let sighup = file.as_ref().map(|_| Sighup::listen()).transpose()?;
    let (upstream, store) = (config.upstream.clone(), config.store.to_string());
    let scheme = |tls: bool| if tls { "https" } else { "http" };
    let (scheme, admin_scheme) = (scheme(config.tls.is_some()), scheme(config.admin.tls.is_some()));
    let mut running = GatewayProcess::start(config).await?;
    if let (Some(file), Some(sighup)) = (file, sighup) {
        running = running.reading(file);
        sighup.reload(running.reload());
    }
    let told = format!(
        "semel gateway: {scheme}://{} in front of {upstream}, store {store}\nadmin API:     {admin_scheme}://{}\n",
        running.address(),
        running.admin_address()
    );
    announce(told);
    Ok(match running.serve(stop, force).await {
        Stopped::Drained => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
