//! `semel clock`: shows the store's clock, and ends a clock hold.

use crate::admin::{self, Admin, Common, Failure};
use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;

/// Show the store's clock, or accept it
///
/// A clock that jumps ahead would end windows too early, so it is not trusted: a clock
/// hold opens, nothing is purged, and keys that would have expired only by the jump are
/// still replayed. The hold ends when the kernel has reported a synchronised clock for
/// `[clock] hold`, when the clock comes back, or by `semel clock accept`.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel clock                 both times, and whether a clock hold is open
  semel clock accept          trust the clock and end the hold

Check the clock (`date -u`) before you accept it: records that have expired by it are
purged at once, and their keys execute again. The admin token is required: set
SEMEL_ADMIN_TOKEN.

Exit status: 0 done, 1 refused, 2 usage error, 3 the admin API is unavailable: try again."
)]
pub(crate) struct Arguments {
    /// Without a command, the clock is shown
    action: Option<Action>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, ValueEnum)]
enum Action {
    /// Trust the clock and end the hold
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

/// Runs the command.
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
        None => "unknown",
    };
    writeln!(out, "kernel    {synchronised} (trust = \"{}\")", clock.trust)?;
    if let Some(wrong) = &clock.wrong {
        writeln!(out, "This instance serves no requests: {wrong}.")?;
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
