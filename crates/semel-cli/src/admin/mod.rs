//! The gateway's admin API, for the commands that ask it.
//!
//! - `api.rs`: asked over HTTP;
//! - `problem.rs`: why it refused;
//! - `operation.rs`: an operation, as it answers;
//! - `listing.rs`: listings, page after page;
//! - `operation.rs`: operations, as the API shows them;
//! - `table.rs`, `age.rs`: how answers are shown.

pub(crate) mod age;
mod api;
mod listing;
pub(crate) mod operation;
mod problem;
pub(crate) mod table;

pub(crate) use api::{Admin, Connection};
pub(crate) use listing::{Page, Paging};

use crate::escape::escape_lines;
use clap::Args;
use std::process::ExitCode;

/// What every command takes.
#[derive(Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) connection: Connection,

    /// Print the API's JSON, with invisible characters escaped.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Invalid arguments.
    #[error("{0}")]
    Usage(String),
    /// The admin API refused the request.
    #[error("{0}")]
    Refused(String),
    /// The admin API did not answer, or is unavailable.
    #[error("{0}")]
    Unanswered(String),
    /// Standard output is closed or full.
    #[error("cannot write the output: {0}")]
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

/// Runs a command to its end.
pub(crate) fn run_to(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Refused(format!("cannot start the runtime: {error}")))?;
    runtime.block_on(command)
}

/// Runs a command to its end, and says why it failed.
pub(crate) fn run(command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    match run_to(command) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads along has had enough (`semel operations list | head`): no reason to complain.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("semel: {}", escape_lines(&failure.to_string()));
            failure.exit_code()
        }
    }
}

/// The path of one thing. What cannot be its id does not become part of an address.
pub(crate) fn path_of(place: &str, id: &str, what: &str) -> Result<String, Failure> {
    if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Ok(format!("{place}/{id}"));
    }
    let like = "0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4";
    Err(Failure::Usage(format!("{id:?} is not a valid {what} id: use an id such as {like}")))
}

/// Asks before something is done that cannot be taken back; what was shown stands above.
pub(crate) fn confirmed(question: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut out = anstream::stderr().lock();
    write!(out, "\n{question} This cannot be undone. [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing was changed".into())),
    }
}
