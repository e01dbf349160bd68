//! `semel operations settle`

use super::{many, show};
use crate::admin::operation::{Operation, Shown};
use crate::admin::table::style_of;
use crate::admin::{Admin, Common, Failure, confirmed};
use crate::escape::escape;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Settle an unknown outcome with what you found out.
///
/// Retries with the same key get the outcome from then on. This cannot be undone.
#[derive(Args)]
#[command(after_help = "\
Outcomes:
  completed     it happened; retries get the response that you give, or 409 if you give none
  failed        it was refused for good; likewise
  not_executed  it did not happen, and nothing in flight can still make it happen:
                the next retry executes. Not for 'nothing was found yet'.
failed and not_executed apply to one attempt only: name the one that you checked with --attempt.

Examples:
  semel operations settle 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --outcome completed \\
      --reason 'the bank has it as tx 17' --status 201 --body '{\"id\":\"pay_1\"}' \\
      --content-type application/json --resource payment/pay_1
  semel operations settle 0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4 --outcome failed \\
      --attempt 1 --reason 'declined, says the bank' --response-file declined.json --yes

Many at once: one JSON object per line, each with operation_id, outcome, attempt, version and reason, and
with response, resource and ticket where there is one. Each is settled as by itself, and nothing is done
where the operation has changed since. The results are appended to FILE.results: run the same command
again to go on where it stopped. It needs the role admin.
  semel operations settle --many settlements.jsonl

A response file has the form of the API: {\"status\": 402, \"headers\": {…}, \"body\": \"…\"}, with body_base64
instead of body for bytes. On a terminal you are asked to confirm.")]
pub(super) struct Arguments {
    /// The operation's id.
    #[arg(value_name = "ID", required_unless_present = "many")]
    id: Option<String>,

    /// The outcome.
    #[arg(long, value_enum, required_unless_present = "many")]
    outcome: Option<Outcome>,

    /// How you know; kept in the operation's history.
    #[arg(long, value_name = "TEXT", required_unless_present = "many")]
    reason: Option<String>,

    /// Settle what this file names, one JSON object per line (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "id", "outcome", "reason", "response_file", "status", "resource", "attempt", "ticket", "expected_version",
    ])]
    many: Option<PathBuf>,

    /// Where the results of --many are kept [default: FILE.results]
    #[arg(long, value_name = "FILE", requires = "many")]
    results: Option<PathBuf>,

    /// JSON file with the response that retries get (- for standard input).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["status", "body", "content_type"])]
    response_file: Option<PathBuf>,

    /// The status of the response that retries get.
    #[arg(long)]
    status: Option<u16>,

    /// The body of that response.
    #[arg(long, value_name = "TEXT", requires = "status")]
    body: Option<String>,

    /// The content type of that response.
    #[arg(long, value_name = "TYPE", requires = "status")]
    content_type: Option<String>,

    /// The resource that was created, as TYPE/ID.
    #[arg(long, value_name = "TYPE/ID")]
    resource: Option<String>,

    /// The attempt that you checked; required for failed and not_executed.
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,

    /// The version that you looked at: if the operation was changed since, nothing is done.
    #[arg(long = "if-version", value_name = "NUMBER")]
    expected_version: Option<u64>,

    /// Where else it is written about, such as a ticket; kept in the audit.
    #[arg(long, value_name = "TEXT")]
    ticket: Option<String>,

    /// Your name, where several people share a token; kept in the audit.
    #[arg(long, value_name = "NAME", env = "USER")]
    operator: Option<String>,

    /// Do not ask for confirmation.
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Outcome {
    Completed,
    Failed,
    NotExecuted,
}

impl Outcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NotExecuted => "not_executed",
        }
    }
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(file) = &arguments.many {
        return many::run(file, arguments.results.as_deref(), &arguments.common).await;
    }
    // clap has seen to it that they are there.
    let (Some(id), Some(outcome)) = (&arguments.id, arguments.outcome) else {
        return Err(Failure::Usage("an operation's id and --outcome are required".into()));
    };
    let admin = Admin::new(&arguments.common.connection)?;
    let path = show::path(id)?;
    let mut resolution = arguments.resolution(outcome)?;
    // Here as well: an earlier gateway would take the current attempt for it.
    if outcome != Outcome::Completed && arguments.attempt.is_none() {
        let shown: Shown = admin.get(&path).await?.document()?;
        return Err(attempt_missing(&shown.operation, outcome));
    }
    if !arguments.yes && std::io::stdin().is_terminal() {
        let shown: Shown = admin.get(&path).await?.document()?;
        confirm(&shown, outcome)?;
        // What was looked at is what is settled, even if a later attempt comes in between.
        resolution.entry("attempt").or_insert(shown.operation.attempt.into());
    }
    let reply = admin.post(&format!("{path}/resolve"), &Value::Object(resolution)).await?;
    if arguments.common.json {
        return reply.print();
    }
    let shown: Shown = reply.document()?;
    let standing = shown.operation.standing();
    let style = style_of(&standing);
    let mut out = anstream::stdout().lock();
    writeln!(out, "{} is {style}{standing}{style:#} now.", shown.operation.operation_id)?;
    Ok(out.flush()?)
}

impl Arguments {
    fn resolution(&self, outcome: Outcome) -> Result<Map<String, Value>, Failure> {
        let mut resolution = Map::new();
        resolution.insert("outcome".into(), outcome.as_str().into());
        resolution.insert("reason".into(), self.reason.as_deref().unwrap_or_default().into());
        if let Some(version) = self.expected_version {
            resolution.insert("version".into(), version.into());
        }
        if let Some(ticket) = &self.ticket {
            resolution.insert("ticket".into(), ticket.as_str().into());
        }
        if let Some(response) = self.response()? {
            resolution.insert("response".into(), response);
        }
        if let Some(resource) = &self.resource {
            let Some((kind, id)) = resource.split_once('/') else {
                return Err(Failure::Usage(format!(
                    "--resource {resource}: write TYPE/ID, such as payment/pay_1"
                )));
            };
            resolution.insert("resource".into(), json!({ "type": kind, "id": id }));
        }
        if let Some(attempt) = self.attempt {
            resolution.insert("attempt".into(), attempt.into());
        }
        if let Some(operator) = self.operator.as_deref().filter(|name| !name.trim().is_empty()) {
            resolution.insert("operator".into(), operator.into());
        }
        Ok(resolution)
    }

    fn response(&self) -> Result<Option<Value>, Failure> {
        if let Some(file) = &self.response_file {
            return read(file).map(Some);
        }
        Ok(self.status.map(|status| {
            let mut response = json!({ "status": status });
            if let Some(body) = &self.body {
                response["body"] = body.as_str().into();
            }
            if let Some(content_type) = &self.content_type {
                response["headers"] = json!({ "content-type": content_type });
            }
            response
        }))
    }
}

fn read(file: &Path) -> Result<Value, Failure> {
    let wrong = |what: String| Failure::Usage(format!("--response-file {}: {what}", file.display()));
    let mut text = String::new();
    let reading = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(drop)
    } else {
        std::fs::read_to_string(file).map(|read| text = read)
    };
    reading.map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text)
        .map_err(|error| wrong(format!("not a JSON document such as {{\"status\": 201}}: {error}")))
}

/// The outcome applies to one attempt only, and the current one need not be the one that was checked.
fn attempt_missing(operation: &Operation, outcome: Outcome) -> Failure {
    let (id, attempt, outcome) = (escape(&operation.operation_id), operation.attempt, outcome.as_str());
    Failure::Usage(format!(
        "--outcome {outcome} applies to one attempt only: name the one that you checked with --attempt.\nThe operation is \
         at attempt {attempt} now; for its history:\n  semel operations show {id}\nIf you checked attempt {attempt}:\n  \
         semel operations settle {id} --outcome {outcome} --attempt {attempt} --reason '…'"
    ))
}

/// Shows what is about to be settled, and asks.
fn confirm(shown: &Shown, outcome: Outcome) -> Result<(), Failure> {
    let mut out = anstream::stderr().lock();
    show::print(&mut out, shown)?;
    drop(out);
    confirmed(&format!("Settle it as {}?", outcome.as_str()))
}
