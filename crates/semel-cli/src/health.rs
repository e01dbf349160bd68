//! `semel health`: for whoever starts and stops containers, and has no curl in them.

use crate::admin::{Admin, Connection, Failure};
use crate::harmless::harmless_lines;
use clap::Args;
use std::process::ExitCode;

/// Ask a running gateway or worker whether it is alive
///
/// Says nothing if it is. For HEALTHCHECK lines and scripts: a container of Semel has no
/// other program in it that could ask.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel health
  semel health --ready                           until the store answers
  semel health --admin http://127.0.0.1:8082     a worker with --admin-listen

Exit status: 0 yes, 1 no or no answer, 2 a mistake in the command."
)]
pub(crate) struct Arguments {
    /// Ask whether requests should come here: the store answers, and nobody has told it to stop.
    ///
    /// Restart nothing because of this: a store that is away does not come back by it.
    #[arg(long)]
    ready: bool,

    #[command(flatten)]
    connection: Connection,
}

/// Asks.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let asked = crate::admin::run_to(async {
        let path = if arguments.ready { "/readyz" } else { "/healthz" };
        Admin::new(&arguments.connection)?.get(path).await?.is_success()
    });
    match asked {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("semel: {}", harmless_lines(&failure.to_string()));
            match failure {
                Failure::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
