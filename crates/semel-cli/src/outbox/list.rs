//! `semel outbox list`

use super::answer::Listed;
use crate::admin::table::{Cell, Table};
use crate::admin::{Admin, Common, Failure, age};
use clap::Args;
use std::io::Write as _;

/// List events that are not published yet, latest first.
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
    /// Only those that wait for a person; --dead-letter=false: only others.
    #[arg(long, value_name = "BOOL", hide_possible_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dead_letter: Option<bool>,

    /// Only of this aggregate, such as payment/pay_1.
    #[arg(long)]
    aggregate: Option<String>,

    /// Only of this kind, such as PaymentCreated.
    #[arg(long)]
    kind: Option<String>,

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
            ("dead_letter", dead_letter.as_deref()),
            ("aggregate", self.aggregate.as_deref()),
            ("kind", self.kind.as_deref()),
            ("limit", Some(self.limit.to_string().as_str())),
            ("cursor", cursor),
        ] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("/v1/outbox?{}", query.finish())
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
        shown += page.events.len();
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
            None if shown == 0 => anstream::eprintln!("No such event."),
            None => {}
        }
    }
    Ok(())
}

fn print(page: &Listed) -> Result<(), Failure> {
    if page.events.is_empty() {
        return Ok(());
    }
    let mut table =
        Table::new(["EVENT ID", "STATE", "APPENDED", "AGGREGATE", "KIND", "REFUSED", "LAST ERROR"]);
    for event in &page.events {
        table.row([
            Cell::whole(&event.event_id),
            Cell::state(&event.standing()),
            Cell::plain(&age::relative(&event.created, page.now)),
            Cell::plain(&event.aggregate),
            Cell::plain(&event.kind),
            Cell::plain(&event.attempts.to_string()),
            Cell::plain(event.last_error.as_deref().unwrap_or_default()),
        ]);
    }
    let mut out = anstream::stdout().lock();
    table.print(&mut out, "")?;
    Ok(out.flush()?)
}
