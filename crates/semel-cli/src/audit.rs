//! `semel audit`: who did what.

use crate::admin::table::{Cell, Table};
use crate::admin::{self, Page, Paging, age};
use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use std::io::{Result as Written, Write};
use std::process::ExitCode;

/// List what operators did, newest first, through the gateway's admin API.
///
/// Admins see all of it; others see what is about operations of their tenants.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    next_line_help = true,
    after_help = "\
Examples:
  semel audit
  semel audit --action settle --after 2026-06-01T00:00:00Z
  semel audit --target 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel audit --actor token:oncall --all --json

Exit status: 0 done, 1 refused, 2 usage error,
3 the admin API is unavailable: try again."
)]
pub(crate) struct Arguments {
    /// Only this actor's, such as token:oncall or proxy:user@example.com.
    #[arg(long)]
    actor: Option<String>,

    /// Only this action, such as settle, reveal, drop or denied.
    #[arg(long)]
    action: Option<String>,

    /// Only about this: an operation id or an event id.
    #[arg(long, value_name = "ID")]
    target: Option<String>,

    /// Only about operations of this tenant.
    #[arg(long)]
    tenant: Option<String>,

    /// Only about operations of this name, such as create_payment.
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,

    /// Only with this result: done, refused, begun or failed.
    #[arg(long)]
    result: Option<String>,

    /// Not before this moment, such as 2026-06-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    after: Option<String>,

    /// Before this moment.
    #[arg(long, value_name = "TIME")]
    before: Option<String>,

    #[command(flatten)]
    paging: Paging,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    admin::run(async {
        let filters = [
            ("actor", arguments.actor.as_deref()),
            ("action", arguments.action.as_deref()),
            ("target", arguments.target.as_deref()),
            ("tenant", arguments.tenant.as_deref()),
            ("operation", arguments.operation.as_deref()),
            ("result", arguments.result.as_deref()),
            ("after", arguments.after.as_deref()),
            ("before", arguments.before.as_deref()),
        ];
        arguments.paging.show::<Listed>("/v1/audit", &filters).await
    })
}

/// A page of the audit. Unknown members are ignored: a newer gateway may send more.
#[derive(Deserialize)]
struct Listed {
    now: Timestamp,
    entries: Vec<Entry>,
    #[serde(default)]
    damaged: usize,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    at: String,
    actor: String,
    action: String,
    result: String,
    target: Option<String>,
    tenant: Option<String>,
    state_after: Option<String>,
    refusal: Option<String>,
    reason: Option<String>,
    note: Option<String>,
}

impl Page for Listed {
    const NOTHING: &'static str = "No entry matches.";

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn damaged(&self) -> usize {
        self.damaged
    }

    fn write(&self, out: &mut impl Write) -> Written<()> {
        let mut table = Table::new(["WHEN", "WHO", "WHAT", "RESULT", "TARGET", "TENANT", "WHY"]);
        for entry in &self.entries {
            let result = match (&entry.state_after, &entry.refusal) {
                (Some(state), _) => format!("{}, {state}", entry.result),
                (None, Some(refusal)) => format!("{}, {refusal}", entry.result),
                (None, None) => entry.result.clone(),
            };
            table.row([
                Cell::plain(&age::relative(&entry.at, self.now)),
                Cell::plain(&entry.actor),
                Cell::plain(&entry.action),
                Cell::plain(&result),
                Cell::whole(entry.target.as_deref().unwrap_or_default()),
                Cell::plain(entry.tenant.as_deref().unwrap_or_default()),
                Cell::plain(entry.reason.as_deref().or(entry.note.as_deref()).unwrap_or_default()),
            ]);
        }
        table.print(out, "")
    }

    fn next_cursor(self) -> Option<String> {
        self.next_cursor
    }
}
