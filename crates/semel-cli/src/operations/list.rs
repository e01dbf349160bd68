//! `semel operations list`

use crate::admin::operation::Listed;
use crate::admin::table::{Cell, Table};
use crate::admin::{Failure, Page, Paging, age};
use clap::Args;
use std::io::{Result as Written, Write};

/// List operations, newest first unless --oldest is given.
#[derive(Args)]
#[command(
    next_line_help = true,
    after_help = "\
Examples:
  semel operations list
  semel operations list --state unknown --operation create_payment
  semel operations list --state unknown --older-than 10m --oldest
  semel operations list --key 0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11
  semel operations list --dead-letter --all --json"
)]
pub(super) struct Arguments {
    /// Only this state: in_progress, completed, failed_replayable, failed_retryable, unknown or expired.
    #[arg(long, hide_possible_values = true, value_parser = [
        "in_progress", "completed", "failed_replayable", "failed_retryable", "unknown", "expired",
    ])]
    state: Option<String>,

    /// Only of this tenant.
    #[arg(long)]
    tenant: Option<String>,

    /// Only with this operation name, such as create_payment.
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,

    /// Only with this Idempotency-Key.
    #[arg(long)]
    key: Option<String>,

    /// Only dead letters, which wait for an operator; --dead-letter=false: only others.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dead_letter: Option<bool>,

    /// Only with this last error, such as timeout.
    #[arg(long)]
    error: Option<String>,

    /// Only with this resource: a type, or TYPE/ID.
    #[arg(long, value_name = "TYPE/ID")]
    resource: Option<String>,

    /// Only created longer ago than this, such as 90s, 10m, 24h or 7d.
    #[arg(long, value_name = "DURATION")]
    older_than: Option<String>,

    /// Only created at this moment or later, such as 2026-06-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    created_after: Option<String>,

    /// Only created before this moment.
    #[arg(long, value_name = "TIME")]
    created_before: Option<String>,

    /// Oldest first.
    #[arg(long)]
    oldest: bool,

    #[command(flatten)]
    paging: Paging,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let dead_letter = arguments.dead_letter.map(|wanted| wanted.to_string());
    let filters = [
        ("state", arguments.state.as_deref()),
        ("tenant", arguments.tenant.as_deref()),
        ("operation", arguments.operation.as_deref()),
        ("key", arguments.key.as_deref()),
        ("dead_letter", dead_letter.as_deref()),
        ("error", arguments.error.as_deref()),
        ("resource", arguments.resource.as_deref()),
        ("older_than", arguments.older_than.as_deref()),
        ("created_after", arguments.created_after.as_deref()),
        ("created_before", arguments.created_before.as_deref()),
        ("order", arguments.oldest.then_some("oldest")),
    ];
    arguments.paging.show::<Listed>("/v1/operations", &filters).await
}

impl Page for Listed {
    const NOTHING: &'static str = "No operation matches.";

    fn len(&self) -> usize {
        self.operations.len()
    }

    fn damaged(&self) -> usize {
        self.damaged
    }

    fn write(&self, out: &mut impl Write) -> Written<()> {
        let mut table =
            Table::new(["OPERATION ID", "STATE", "BEGAN", "OPERATION", "TENANT", "KEY", "LAST ERROR"]);
        for operation in &self.operations {
            table.row([
                Cell::whole(&operation.operation_id),
                Cell::state(&operation.standing()),
                Cell::plain(&age::relative(&operation.times.created, self.now)),
                Cell::plain(&operation.operation),
                Cell::plain(&operation.tenant),
                Cell::plain(&operation.key),
                Cell::plain(operation.last_error.as_deref().unwrap_or_default()),
            ]);
        }
        table.print(out, "")
    }

    fn next_cursor(self) -> Option<String> {
        self.next_cursor
    }
}
