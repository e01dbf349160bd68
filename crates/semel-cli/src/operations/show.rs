//! `semel operations show`

use crate::admin::operation::{Operation, Response, Shown};
use crate::admin::table::{Cell, Table, style_of};
use crate::admin::{Admin, Common, Connection, Failure, age, path_of};
use crate::escape::escape;
use clap::Args;
use jiff::Timestamp;
use std::io::{Result as Written, Write};

/// Show one operation, with its history.
#[derive(Args)]
#[command(
    next_line_help = true,
    after_help = "\
Examples:
  semel operations show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4
  semel operations show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --full-key
  semel operations show 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --json | jq .state

The body of the stored answer is never shown."
)]
pub(super) struct Arguments {
    /// The operation's id: clients see it as Semel-Operation-Id.
    #[arg(value_name = "ID")]
    id: String,

    /// Show the whole Idempotency-Key instead of its first 8 characters.
    #[arg(long)]
    full_key: bool,

    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = Admin::new(&arguments.common.connection)?;
    let query = if arguments.full_key { "?full_key=true" } else { "" };
    let reply = admin.get(&format!("{}{query}", path(&arguments.id)?)).await?;
    if arguments.common.json {
        return reply.print();
    }
    let shown: Shown = reply.document()?;
    let mut out = anstream::stdout().lock();
    print(&mut out, &shown)?;
    if shown.operation.is_unknown() {
        hint(&mut out, &shown.operation, &arguments.common.connection)?;
    }
    Ok(out.flush()?)
}

/// The path of an operation.
pub(super) fn path(id: &str) -> Result<String, Failure> {
    path_of("/v1/operations", id, "operation")
}

/// As wide as the longest name, and some space.
const NAMES: usize = 16;

pub(super) fn print(out: &mut impl Write, shown: &Shown) -> Written<()> {
    let Shown { now, operation, history } = shown;
    let standing = operation.standing();
    let style = style_of(&standing);
    writeln!(out, "{:<NAMES$}{}", "operation id", escape(&operation.operation_id))?;
    writeln!(out, "{:<NAMES$}{style}{}{style:#}", "state", escape(&standing))?;
    for (name, value) in fields(operation).into_iter().chain(moments(operation, *now)) {
        if let Some(value) = value {
            writeln!(out, "{name:<NAMES$}{}", escape(&value))?;
        }
    }
    if history.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["WHEN", "WHAT", "WHO", "ATTEMPT", "NOTE"]);
    for line in history {
        table.row([
            Cell::whole(&age::relative(&line.at, *now)),
            Cell::whole(&line.happening),
            Cell::whole(&line.actor),
            Cell::whole(&line.attempt.to_string()),
            Cell::whole(line.note.as_deref().unwrap_or_default()),
        ]);
    }
    writeln!(out, "\nhistory")?;
    table.print(out, "  ")
}

type Field = (&'static str, Option<String>);

fn fields(operation: &Operation) -> Vec<Field> {
    let asked = operation.reconcile_attempts;
    vec![
        ("operation", Some(operation.operation.clone())),
        ("tenant", Some(operation.tenant.clone())),
        ("key", Some(operation.key.clone())),
        ("attempt", Some(format!("{} (version {})", operation.attempt, operation.version))),
        ("last error", operation.last_error.clone()),
        ("reached", operation.recovery_point.clone()),
        ("made", operation.resource.as_ref().map(|made| format!("{}/{}", made.kind, made.id))),
        ("answer", operation.response.as_ref().map(answer)),
        ("polled", (asked > 0).then(|| format!("{asked} times"))),
    ]
}

fn moments(operation: &Operation, now: Timestamp) -> [Field; 6] {
    let times = &operation.times;
    let said = |moment: &String| format!("{moment} ({})", age::relative(moment, now));
    [
        ("began", Some(said(&times.created))),
        ("lease until", Some(said(&times.lease_until))),
        ("ended", times.completed.as_ref().map(said)),
        ("next poll", times.next_reconcile.as_ref().map(said)),
        ("replayed until", times.expires.as_ref().map(said)),
        ("known until", times.purge.as_ref().map(said)),
    ]
}

fn answer(response: &Response) -> String {
    let body = match (response.body.as_str(), response.body_bytes) {
        ("stored", Some(bytes)) => format!("body of {bytes} bytes"),
        ("stored", None) => "with a body".into(),
        (otherwise, _) => format!("body {otherwise}"),
    };
    let headers = match response.headers.as_slice() {
        [] => "no headers".into(),
        names => format!("headers: {}", names.join(", ")),
    };
    format!("{}, {body}, {headers}", response.status)
}

/// The command for each outcome, as it can be pasted once the reason is filled in.
fn hint(out: &mut impl Write, operation: &Operation, connection: &Connection) -> Written<()> {
    let command =
        format!("semel operations settle {}{}", escape(&operation.operation_id), connection.flags());
    let attempt = operation.attempt;
    let is_json = "--content-type application/json";
    writeln!(
        out,
        "\nThe outcome is unknown. Find out what became of attempt {attempt}, then settle it. Replace each …."
    )?;
    writeln!(out, "\nIt happened; retries get this response:")?;
    writeln!(out, "  {command} --outcome completed \\")?;
    writeln!(out, "      --status 201 {is_json} --body '{{\"id\": \"…\"}}' --reason '…'")?;
    writeln!(out, "It was refused for good; retries get this response:")?;
    writeln!(out, "  {command} --outcome failed --attempt {attempt} \\")?;
    writeln!(out, "      --status 402 {is_json} --body '{{\"error\": \"…\"}}' --reason '…'")?;
    writeln!(out, "It did not happen, and nothing in flight can make it happen; the next retry executes:")?;
    writeln!(out, "  {command} --outcome not_executed --attempt {attempt} --reason '…'")?;
    if !connection.has_token() {
        writeln!(out, "Settling needs the token that the gateway was started with: set SEMEL_ADMIN_TOKEN.")?;
    }
    Ok(())
}
