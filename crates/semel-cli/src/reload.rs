//! `semel reload`: has a running gateway or worker read its configuration anew, and tells what came of it.

use crate::admin::{self, Admin, Common, Failure};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Have a running gateway or worker read its configuration anew
///
/// The file that it was started with is read and checked, everything is built beside
/// what is in force, and takes its place between two requests. No connection is cut, and
/// requests under way end by the rules that they began with. If anything is wrong with
/// the file, the old configuration stays in force, and you are told what and where.
///
/// `listen`, `[admin] listen`, `store`, `store_timeout`, `[logs]`, `[telemetry]`, and
/// `waiters` and `waiters_per_tenant` in `[quota]` cannot change so: that needs a restart,
/// and the whole file is refused until they are as before. Environment variables are those
/// that the process was started with.
///
/// SIGHUP does the same, and tells the log alone.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel check-config semel.toml && semel reload
  semel reload --admin http://127.0.0.1:8082     a worker with --admin-listen
  kill -HUP $(pidof semel)                       without the admin API

It needs the admin token: set SEMEL_ADMIN_TOKEN rather than --token, which other users of
this machine can see in the list of processes.

Exit status: 0 the new configuration is in force, 1 refused: the old one is,
2 a mistake in the command, 3 the admin API cannot be reached."
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

/// Reloads.
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
        operations => format!("it protects {}", operations.join(", ")),
    };
    let mut out = anstream::stdout().lock();
    writeln!(out, "{file} is in force: {operations}.")?;
    Ok(out.flush()?)
}
