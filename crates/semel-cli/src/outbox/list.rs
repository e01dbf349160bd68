//! `semel outbox list`

use super::answer::Listed;
use crate::admin::table::{Cell, Table};
use crate::admin::{Failure, Page, Paging, age};
use clap::Args;
use std::io::{Result as Written, Write};

/// List events that are not published yet, newest first.
#[derive(Args)]
#[command(
    next_line_help = true,
    after_help = "\
Examples:
  semel outbox list
  semel outbox list --dead-letter
  semel outbox list --aggregate payment/pay_1 --all --json"
)]
pub(super) struct Arguments {
    /// Only dead letters, which wait for an operator; --dead-letter=false: only others.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dead_letter: Option<bool>,

    /// Only of this aggregate, such as payment/pay_1.
    #[arg(long)]
    aggregate: Option<String>,

    /// Only of this kind, such as PaymentCreated.
    #[arg(long)]
    kind: Option<String>,

    #[command(flatten)]
    paging: Paging,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let dead_letter = arguments.dead_letter.map(|wanted| wanted.to_string());
    let filters = [
        ("dead_letter", dead_letter.as_deref()),
        ("aggregate", arguments.aggregate.as_deref()),
        ("kind", arguments.kind.as_deref()),
    ];
    arguments.paging.show::<Listed>("/v1/outbox", &filters).await
}

impl Page for Listed {
    const NOTHING: &'static str = "No event matches.";

    fn len(&self) -> usize {
        self.events.len()
    }

    fn write(&self, out: &mut impl Write) -> Written<()> {
        let mut table =
            Table::new(["EVENT ID", "STATE", "APPENDED", "AGGREGATE", "KIND", "REFUSED", "LAST ERROR"]);
        for event in &self.events {
            table.row([
                Cell::whole(&event.event_id),
                Cell::state(&event.standing()),
                Cell::plain(&age::relative(&event.created, self.now)),
                Cell::plain(&event.aggregate),
                Cell::plain(&event.kind),
                Cell::plain(&event.attempts.to_string()),
                Cell::plain(event.last_error.as_deref().unwrap_or_default()),
            ]);
        }
        table.print(out, "")
    }

    fn next_cursor(self) -> Option<String> {
        self.next_cursor
    }
}
