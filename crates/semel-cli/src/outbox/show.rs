//! `semel outbox show`

use super::answer::Shown;
use crate::admin::table::style_of;
use crate::admin::{Admin, Common, Failure, age, path_of};
use crate::escape::escape;
use clap::Args;
use std::io::{Result as Written, Write};

/// Show one event, with its payload.
#[derive(Args)]
#[command(
    next_line_help = true,
    after_help = "\
Examples:
  semel outbox show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel outbox show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --json | jq -r .payload"
)]
pub(super) struct Arguments {
    /// The event's id: the message id that receivers see.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let reply = admin.get(&path(&arguments.id)?).await?;
    if arguments.common.json {
        return reply.print();
    }
    let shown: Shown = reply.document()?;
    let mut out = anstream::stdout().lock();
    print(&mut out, &shown)?;
    if shown.event.dead_letter {
        let id = escape(&shown.event.event_id);
        writeln!(
            out,
            "\nThis event and the later ones of its aggregate wait for an operator. Once the receiver would accept it:"
        )?;
        writeln!(out, "  semel outbox requeue {id}")?;
        writeln!(out, "or, if it is no longer needed:")?;
        writeln!(out, "  semel outbox drop {id} --reason '…'")?;
    }
    Ok(out.flush()?)
}

/// The path of an event.
pub(super) fn path(id: &str) -> Result<String, Failure> {
    path_of("/v1/outbox", id, "event")
}

/// As wide as the longest name, and some space.
const NAMES: usize = 16;

pub(super) fn print(out: &mut impl Write, shown: &Shown) -> Written<()> {
    let Shown { now, event, payload, payload_base64 } = shown;
    let standing = event.standing();
    let style = style_of(&standing);
    let said = |moment: &String| format!("{moment} ({})", age::relative(moment, *now));
    writeln!(out, "{:<NAMES$}{}", "event id", escape(&event.event_id))?;
    writeln!(out, "{:<NAMES$}{style}{}{style:#}", "state", escape(&standing))?;
    let payload = payload.clone().or_else(|| payload_base64.as_ref().map(|text| format!("base64: {text}")));
    for (name, value) in [
        ("aggregate", Some(event.aggregate.clone())),
        ("kind", Some(event.kind.clone())),
        ("refused", (event.attempts > 0).then(|| format!("{} times", event.attempts))),
        ("last error", event.last_error.clone()),
        ("appended", Some(said(&event.created))),
        ("next attempt", event.next_attempt.as_ref().map(said)),
        ("content type", Some(event.content_type.clone())),
        ("payload", payload),
    ] {
        if let Some(value) = value {
            writeln!(out, "{name:<NAMES$}{}", escape(&value))?;
        }
    }
    Ok(())
}
