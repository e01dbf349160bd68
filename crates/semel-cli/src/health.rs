//! `semel health`: a health check for containers that have no curl.

use crate::admin::{Admin, Connection, Failure};
use crate::escape::escape_lines;
use clap::Args;
use std::process::ExitCode;

/// Check whether a running gateway or worker is healthy
///
/// Prints nothing if it is. For HEALTHCHECK lines and scripts: Semel's container image has
/// no other program that could ask.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel health
  semel health --ready                           whether it can take requests
  semel health --admin http://127.0.0.1:8082     a worker with --admin-listen

Exit status: 0 healthy, 1 unhealthy or no answer, 2 usage error."
)]
pub(crate) struct Arguments {
    /// Check readiness instead: the store is available, and the process is not stopping.
    ///
    /// Not a reason to restart: that does not bring an unavailable store back.
    #[arg(long)]
    ready: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let asked = crate::admin::run_to(async {
        let path = if arguments.ready { "/readyz" } else { "/healthz" };
        Admin::new(&arguments.connection)?.get(path).await?.is_success()
    });
    match asked {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("semel: {}", escape_lines(&failure.to_string()));
            match failure {
                Failure::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
