//! `semel outbox requeue`

use super::show;
use crate::admin::{Admin, Common, Failure};
use crate::escape::escape;
use clap::Args;
use serde_json::json;
use std::io::Write as _;

/// Publish a dead letter again.
///
/// It gets all its attempts again, and the later events of its aggregate follow in order.
#[derive(Args)]
#[command(after_help = "\
Examples:
  semel outbox requeue 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel outbox list --dead-letter --all --json | jq -r '.events[].event_id' | xargs -n1 semel outbox requeue")]
pub(super) struct Arguments {
    /// The event's id.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let reply = admin.post(&format!("{}/requeue", show::path(&arguments.id)?), &json!({})).await?;
    if arguments.common.json {
        return reply.print();
    }
    let event: super::answer::Event = reply.document()?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "Requeued {}.", escape(&event.event_id))?;
    Ok(out.flush()?)
}
