//! `semel operations poll`

use super::show;
use crate::admin::operation::Shown;
use crate::admin::{Admin, Common, Failure};
use clap::Args;
use serde_json::json;
use std::io::Write as _;

/// Ask the service now what became of an operation in doubt.
///
/// A dead letter is asked about too, as often as doubt that is new. A worker asks within a second or so.
#[derive(Args)]
#[command(after_help = "\
Examples:
  semel operations poll 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4

Refused if the outcome is not unknown, or if no poll is configured for the operation.")]
pub(super) struct Arguments {
    /// The operation's id.
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let reply = admin.post(&format!("{}/poll", show::path(&arguments.id)?), &json!({})).await?;
    if arguments.common.json {
        return reply.print();
    }
    let shown: Shown = reply.document()?;
    let mut out = anstream::stdout().lock();
    writeln!(out, "{} is polled next.", shown.operation.operation_id)?;
    Ok(out.flush()?)
}
