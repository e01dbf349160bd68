//! `semel clock`: what time it is by the store, and an operator's word that it is right.

use crate::admin::{self, Admin, Common, Failure};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Show the store's clock, or accept it
///
/// A clock that jumps ahead would end windows that still run, so it is not believed: a
/// clock hold is open, nothing is purged, and what is over only by the jump is still
/// replayed. It ends when the kernel reports a synchronised clock for as long as
/// `[clock] hold` says, when the clock comes back, or by `semel clock accept`.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel clock                 both times, and whether a clock hold is open
  semel clock accept          the clock is right: end the hold

Look at the clock before you accept it (`date -u`): what is over by it is purged at once,
and its keys are new work. It needs the admin token: set SEMEL_ADMIN_TOKEN.

Exit status: 0 done, 1 refused, 2 a mistake in the command, 3 the admin API cannot be
reached or cannot answer now: try again."
)]
pub(crate) struct Arguments {
    /// What to do; without it, the clock is shown
    action: Option<Action>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    /// End a clock hold: the clock is right
    Accept,
}

#[derive(Deserialize)]
struct Clock {
    held: bool,
    earliest: String,
    latest: String,
    claimed: String,
    trust: String,
    hold_ends_after_seconds: u64,
    synchronised: Option<bool>,
    synchronised_for_seconds: u64,
    wrong: Option<String>,
}

/// Asks, and tells.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    admin::run(clock(arguments))
}

async fn clock(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let reply = match arguments.action {
        None => admin.get("/v1/clock").await?,
        Some(Action::Accept) => admin.post("/v1/clock/accept", &json!({})).await?,
    };
    if arguments.common.json {
        return reply.print();
    }
    let clock: Clock = reply.document()?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "earliest  {}", clock.earliest)?;
    writeln!(out, "latest    {}", clock.latest)?;
    writeln!(out, "clock     {}", clock.claimed)?;
    let synchronised = match clock.synchronised {
        Some(true) => "synchronised",
        Some(false) => "not synchronised",
        None => "cannot be asked",
    };
    writeln!(out, "kernel    {synchronised} (trust = \"{}\")", clock.trust)?;
    if let Some(wrong) = &clock.wrong {
        writeln!(out, "This instance serves nothing: {wrong}.")?;
    } else if clock.held {
        writeln!(
            out,
            "A clock hold is open: nothing is purged. It ends after {} s of a synchronised clock ({} s so far), when the clock\ncomes back, or by `semel clock accept`.",
            clock.hold_ends_after_seconds, clock.synchronised_for_seconds
        )?;
    } else {
        writeln!(out, "No clock hold is open.")?;
    }
    Ok(out.flush()?)
}
