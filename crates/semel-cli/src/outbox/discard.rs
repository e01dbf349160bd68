//! `semel outbox drop`

use super::answer::{Event, Shown};
use super::show;
use crate::admin::{Admin, Common, Failure, confirmed};
use crate::escape::escape;
use clap::Args;
use serde_json::json;
use std::io::{IsTerminal as _, Write as _};

/// Drop a dead letter from the outbox.
///
/// It is never published, and the later events of its aggregate follow without it. This cannot be undone.
#[derive(Args)]
#[command(after_help = "\
Examples:
  semel outbox drop 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --reason 'the partner has closed: ticket 4711'

On a terminal you are asked to confirm. What was dropped, by whom and why, is kept in the table
semel_outbox_dropped.")]
pub(super) struct Arguments {
    /// The event's id.
    #[arg(value_name = "ID")]
    id: String,

    /// Why it is not needed; stored with the event.
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// Your name; stored with the event.
    #[arg(long, value_name = "NAME", env = "USER")]
    operator: Option<String>,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let path = show::path(&arguments.id)?;
    if !arguments.yes && std::io::stdin().is_terminal() {
        let shown: Shown = admin.get(&path).await?.document()?;
        show::print(&mut anstream::stderr().lock(), &shown)?;
        confirmed("Drop it?")?;
    }
    let mut word = json!({ "reason": arguments.reason });
    if let Some(operator) = arguments.operator.as_deref().filter(|name| !name.trim().is_empty()) {
        word["operator"] = operator.into();
    }
    let reply = admin.post(&format!("{path}/drop"), &word).await?;
    if arguments.common.json {
        return reply.print();
    }
    let event: Event = reply.document()?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "Dropped {}.", escape(&event.event_id))?;
    Ok(out.flush()?)
}
