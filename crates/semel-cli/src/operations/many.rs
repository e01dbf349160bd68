//! `semel operations settle --many FILE`: many operations, each on evidence of its own.

use crate::admin::{Admin, Common, Failure};
use crate::escape::escape;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// How many go in one request: few, so that progress shows and an interruption leaves little open.
const AT_ONCE: usize = 20;

/// The API's answer.
#[derive(Deserialize)]
struct Results {
    results: Vec<Value>,
}

/// What is read of one result; the rest is kept as it is.
#[derive(Deserialize)]
struct Outcome {
    operation_id: String,
    settled: bool,
    code: Option<String>,
    detail: Option<String>,
}

impl Outcome {
    /// Whether another try could have another result.
    fn is_final(&self) -> bool {
        self.settled
            || !matches!(
                self.code.as_deref(),
                Some("admin_not_tried" | "admin_store_unavailable" | "admin_act_unknown")
            )
    }
}

/// Settles what `file` names, line by line.
pub(super) async fn run(file: &Path, results: Option<&Path>, common: &Common) -> Result<(), Failure> {
    let admin = Admin::new(&common.connection)?;
    let all = read(file)?;
    let place = match (results, file == Path::new("-")) {
        (Some(results), _) => Some(results.to_owned()),
        (None, false) => Some(PathBuf::from(format!("{}.results", file.display()))),
        (None, true) => None,
    };
    let done = place.as_deref().map(read_results).transpose()?.unwrap_or_default();
    let mut kept = place.as_deref().map(open).transpose()?;
    let open: Vec<&Value> = all.iter().filter(|item| !done.contains_key(id_of(item))).collect();
    let mut refused = all.iter().filter(|item| done.get(id_of(item)) == Some(&false)).count();
    let mut settled = all.len() - open.len() - refused;
    if !done.is_empty() {
        anstream::eprintln!("{} of {} are done already.", settled + refused, all.len());
    }
    for batch in open.chunks(AT_ONCE) {
        let reply = admin.post("/v1/resolutions", &json!({ "resolutions": batch })).await?;
        let answer: Results = reply.document()?;
        let mut failed = None;
        for result in answer.results {
            let outcome: Outcome = serde_json::from_value(result.clone())
                .map_err(|error| Failure::Unanswered(format!("the answer is of another version: {error}")))?;
            show(&result, &outcome, common.json)?;
            if !outcome.is_final() {
                failed = failed.or(outcome.detail);
                continue;
            }
            if outcome.settled {
                settled += 1
            } else {
                refused += 1
            }
            if let Some(kept) = &mut kept {
                writeln!(kept, "{result}")?;
            }
        }
        if let Some(kept) = &mut kept {
            kept.sync_data()?;
        }
        anstream::eprintln!("{} of {}: {settled} settled, {refused} refused", settled + refused, all.len());
        if let Some(why) = failed {
            return Err(Failure::Unanswered(format!("stopped: {why} Run the same command again to go on.")));
        }
    }
    match refused {
        0 => Ok(()),
        _ => Err(Failure::Refused(format!("{refused} of {} were refused: look at each", all.len()))),
    }
}

fn show(result: &Value, outcome: &Outcome, as_json: bool) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let id = escape(&outcome.operation_id);
    if as_json {
        out.write_all(&crate::escape::escape_json(result.to_string().as_bytes()))?;
        writeln!(out)?;
    } else if outcome.settled {
        writeln!(out, "{id}  settled")?;
    } else {
        let (code, detail) = (outcome.code.as_deref(), outcome.detail.as_deref());
        let (code, detail) = (escape(code.unwrap_or("refused")), escape(detail.unwrap_or_default()));
        writeln!(out, "{id}  {code}  {detail}")?;
    }
    Ok(out.flush()?)
}

fn id_of(item: &Value) -> &str {
    item["operation_id"].as_str().unwrap_or_default()
}

/// The items of the file: JSON, one object per line.
fn read(file: &Path) -> Result<Vec<Value>, Failure> {
    let wrong = |what: String| Failure::Usage(format!("--many {}: {what}", file.display()));
    let mut text = String::new();
    let reading = match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(file).map(|read| text = read),
    };
    reading.map_err(|error| wrong(error.to_string()))?;
    let mut items: Vec<Value> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = |what: String| wrong(format!("line {}: {what}", number + 1));
        let item: Value = serde_json::from_str(line).map_err(|error| at(error.to_string()))?;
        for member in ["operation_id", "outcome", "attempt", "version", "reason"] {
            if item[member].is_null() {
                return Err(at(format!("`{member}` is missing; see `semel operations settle --help`")));
            }
        }
        let id = id_of(&item);
        if items.iter().any(|other| id_of(other) == id) {
            return Err(at(format!("operation {} is named twice", escape(id))));
        }
        items.push(item);
    }
    if items.is_empty() {
        return Err(wrong("it is empty".into()));
    }
    Ok(items)
}

/// What an earlier run came to: each operation, and whether it was settled.
fn read_results(place: &Path) -> Result<HashMap<String, bool>, Failure> {
    let wrong = |what: String| Failure::Usage(format!("{}: {what}", place.display()));
    let text = match std::fs::read_to_string(place) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(wrong(error.to_string())),
    };
    // A line that an interruption cut short is of an operation that is asked for again.
    let outcomes = text.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok());
    Ok(outcomes.map(|outcome| (outcome.operation_id, outcome.settled)).collect())
}

fn open(place: &Path) -> Result<File, Failure> {
    let opening = OpenOptions::new().create(true).append(true).open(place);
    opening.map_err(|error| Failure::Usage(format!("{}: {error}", place.display())))
}
