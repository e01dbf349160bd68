//! `semel operations`: what the gateway remembers, and a person's word where nobody else knows.
//!
//! - `admin.rs`: the admin API, asked over HTTP;
//! - `list.rs`, `show.rs`, `resolve.rs`: the commands;
//! - `answer.rs`: the parts of the API's answers that people are shown;
//! - `table.rs`, `age.rs`: how they are shown.

mod admin;
mod age;
mod answer;
mod list;
mod resolve;
mod show;
mod table;

use admin::{Admin, Connection};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// List, show and settle operations, through the gateway's admin API.
///
/// An operation is what one Idempotency-Key stands for. Most need nobody. One whose
/// outcome is unknown may need a person who finds out what happened and says so.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel operations list --state unknown
  semel operations list --dead-letter --json | jq '.operations[].operation_id'
  semel operations show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel operations resolve 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 \\
      --outcome not_executed --reason 'the bank has no such transfer: ticket 4711'

The token: set SEMEL_ADMIN_TOKEN rather than --token, which other users of this machine
can see in the list of processes.

Exit status: 0 done, 1 refused or not there, 2 a mistake in the command,
3 the admin API cannot be reached or cannot answer now: try again."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    List(list::Arguments),
    Show(show::Arguments),
    Resolve(resolve::Arguments),
}

/// What every command takes.
#[derive(Args)]
struct Common {
    #[command(flatten)]
    connection: Connection,

    /// Print the API's JSON, unchanged.
    #[arg(long)]
    json: bool,
}

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The command cannot be meant so.
    #[error("{0}")]
    Usage(String),
    /// The answer is no.
    #[error("{0}")]
    Refused(String),
    /// There is no answer, or none for now.
    #[error("{0}")]
    Unanswered(String),
    /// Nobody reads what we print any more.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Refused(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Unanswered(_) => 3,
        })
    }
}

/// Runs a command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            anstream::eprintln!("semel: the runtime cannot be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    let done = runtime.block_on(async {
        match &arguments.command {
            Command::List(arguments) => list::run(arguments).await,
            Command::Show(arguments) => show::run(arguments).await,
            Command::Resolve(arguments) => resolve::run(arguments).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads along has had enough (`semel operations list | head`): no reason to complain.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("semel: {failure}");
            failure.exit_code()
        }
    }
}
