//! `semel reload`: reloads the configuration of a running gateway or worker.

use crate::admin::{self, Admin, Common, Failure};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Reload the configuration of a running gateway or worker
///
/// The process reads and checks the file that it was started with, builds the new
/// configuration beside the current one, and switches between two requests. No connection
/// is closed, and requests in flight end under the old rules. If the file has an error,
/// the current configuration stays in force and the error is shown.
///
/// `listen`, `[admin] listen`, `store`, `store_timeout`, `[logs]`, `[telemetry]`, and
/// `waiters` and `waiters_per_tenant` in `[quota]` need a restart: if one of them changed,
/// the whole file is refused. Environment variables are those that the process was
/// started with.
///
/// SIGHUP does the same and reports to the log only.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel check-config semel.toml && semel reload
  semel reload --admin http://127.0.0.1:8082     a worker with --admin-listen
  kill -HUP $(pidof semel)                       without the admin API

The admin token is required: set SEMEL_ADMIN_TOKEN rather than --token, which other users
of this machine can see in the process list.

Exit status: 0 the new configuration is in force, 1 refused, the current one stays in
force, 2 usage error, 3 the admin API is unavailable."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: Common,
}

/// What is in force now.
#[derive(Deserialize)]
struct Reloaded {
    file: String,
    operations: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    admin::run(reload(arguments))
}

async fn reload(arguments: &Arguments) -> Result<(), Failure> {
    let reply = Admin::new(&arguments.common.connection)?.post("/v1/reload", &json!({})).await?;
    if arguments.common.json {
        return reply.print();
    }
    let Reloaded { file, operations } = reply.document()?;
    let operations = match operations.as_slice() {
        [] => "every POST and PATCH with a key is protected".to_owned(),
        operations => format!("protects {}", operations.join(", ")),
    };
    let mut out = anstream::stdout().lock();
    writeln!(out, "{file} is in force: {operations}.")?;
    Ok(out.flush()?)
}
