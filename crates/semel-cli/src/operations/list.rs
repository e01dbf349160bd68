//! `semel operations list`

use super::answer::Listed;
use crate::admin::table::{Cell, Table};
use crate::admin::{Admin, Common, Failure, age};
use clap::Args;
use std::io::Write as _;

/// List operations, newest first.
#[derive(Args)]
#[command(
    next_line_help = true,
    after_help = "\
Examples:
  semel operations list
  semel operations list --state unknown --operation create_payment
  semel operations list --key 0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11
  semel operations list --dead-letter --all --json"
)]
pub(super) struct Arguments {
    /// Only this state: in_progress, completed, failed_replayable, failed_retryable, unknown or expired.
    #[arg(long, hide_possible_values = true, value_parser = [
        "in_progress", "completed", "failed_replayable", "failed_retryable", "unknown", "expired",
    ])]
    state: Option<String>,

    /// Only this tenant's.
    #[arg(long)]
    tenant: Option<String>,

    /// Only the operation of this name, such as create_payment.
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,

    /// Only of this Idempotency-Key.
    #[arg(long)]
    key: Option<String>,

    /// Only those that wait for a person; --dead-letter=false: only others.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dead_letter: Option<bool>,

    /// So many to a page, up to 1000.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,

    /// Where to go on: what the page before has said.
    #[arg(long, conflicts_with = "all")]
    cursor: Option<String>,

    /// Page after page, to the end; with --json, one line of JSON for each page.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    common: Common,
}

impl Arguments {
    fn path(&self, cursor: Option<&str>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let dead_letter = self.dead_letter.map(|wanted| wanted.to_string());
        for (name, value) in [
            ("state", self.state.as_deref()),
            ("tenant", self.tenant.as_deref()),
            ("operation", self.operation.as_deref()),
            ("key", self.key.as_deref()),
            ("dead_letter", dead_letter.as_deref()),
            ("limit", Some(self.limit.to_string().as_str())),
            ("cursor", cursor),
        ] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("/v1/operations?{}", query.finish())
    }
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let mut cursor = arguments.cursor.clone();
    let mut shown = 0;
    loop {
        let reply = admin.get(&arguments.path(cursor.as_deref())).await?;
        if arguments.common.json {
            reply.print()?;
        }
        let page: Listed = reply.document()?;
        shown += page.operations.len();
        if !arguments.common.json {
            print(&page)?;
        }
        cursor = page.next_cursor;
        if cursor.is_none() || !arguments.all {
            break;
        }
    }
    if !arguments.common.json {
        // Beside the rows, so that they can be counted and cut.
        match cursor {
            Some(cursor) => anstream::eprintln!("{shown} shown. More: --cursor {cursor}, or --all"),
            None if shown == 0 => anstream::eprintln!("No such operation."),
            None => {}
        }
    }
    Ok(())
}

fn print(page: &Listed) -> Result<(), Failure> {
    if page.operations.is_empty() {
        return Ok(());
    }
    let mut table =
        Table::new(["OPERATION ID", "STATE", "BEGAN", "OPERATION", "TENANT", "KEY", "LAST ERROR"]);
    for operation in &page.operations {
        table.row([
            Cell::whole(&operation.operation_id),
            Cell::state(&operation.standing()),
            Cell::plain(&age::relative(&operation.times.created, page.now)),
            Cell::plain(&operation.operation),
            Cell::plain(&operation.tenant),
            Cell::plain(&operation.key),
            Cell::plain(operation.last_error.as_deref().unwrap_or_default()),
        ]);
    }
    let mut out = anstream::stdout().lock();
    table.print(&mut out, "")?;
    Ok(out.flush()?)
}
