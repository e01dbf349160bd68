//! The field report: facts, in a tone that the authors can read without taking offence.

use super::peers::Peer;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One implementation, alone and behind the gateway.
pub(super) struct Seen {
    pub(super) peer: &'static Peer,
    pub(super) alone: Result<Value, String>,
    pub(super) behind: Result<Value, String>,
}

const HEAD: &str = "\
# Field report: `semel check` on third-party software

*Made by `cargo xtask prove check`, {run}. The services are in `proof/check`.*

What `semel check` observed of third-party implementations of idempotency keys, each alone and then behind `semel gateway`. Every package comes
from PyPI or npm at the version named. Where it is a middleware, the service around it was written here and set up as its documentation says, except where the section says
otherwise; where it is an application, it runs as it is.

Read it with care:

- These are observations of one version, in one setup, on one day. Other settings may give other results.
- Several of the cases are outside of what a package promises. An implementation that keeps keys in memory by default says so; one that refuses duplicates
  instead of repeating the answer does what it was built for. The table says what a client would see.
- Authentication is part of the handler here, the usual way in these frameworks. A middleware cannot know who the caller is unless it is told.
- Behind the gateway, each middleware stays switched on and receives the key as well, since the gateway forwards `Idempotency-Key`. What it answers to a key that the gateway has
  not seen from this caller, or for this operation, is its own answer: that is why leaks and wrong answers between callers and operations remain. Switch the middleware off behind a
  gateway, or remove the key there.
- The two applications read keys from headers of their own (`X-Parse-Request-Id`, `X-Idempotency-Key`). Alone, the check sends their header; behind the gateway it sends
  `Idempotency-Key`, which they do not read. There, only the gateway's protection is observed.
- `body.deep` sends 2^53 and 2^53 + 1. A service in JavaScript reads both as the same number, and takes the second for the first. The gateway compares the text of numbers, and refuses the
  second before the service reads it.
- Crashes were waited for 40 seconds. A lock with a longer time-out counts as stuck.
- Not everything that Semel does differently is better for everybody: it writes to disk twice per request, and answers `409` where the outcome cannot be known.

{never}
";

pub(super) fn render(seen: &[Seen]) -> String {
    let mut text = HEAD.replace("{run}", &run(seen)).replace("{never}", &never_judged(seen));
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "| implementation | version | kind | bad findings, alone | bad findings, behind Semel |\n|---|---|---|---|---|"
    );
    for one in seen {
        let kind = if one.peer.is_application { "application" } else { "middleware" };
        let _ = writeln!(
            text,
            "| {} | {} | {kind} | {} | {} |",
            one.peer.id(),
            one.peer.version,
            count(&one.alone),
            count(&one.behind)
        );
    }
    text.push_str(
        "\nBad are double executions, wrong answers, leaks, lost answers and keys that stay blocked.\n",
    );
    for one in seen {
        let _ = writeln!(
            text,
            "\n## {} {}\n\n{}.\n",
            one.peer.id(),
            one.peer.version,
            one.peer.setup.trim_end_matches('.')
        );
        section(&mut text, "Alone", &one.alone);
        section(&mut text, "Behind `semel gateway`", &one.behind);
    }
    text
}

/// The cases that came to no verdict in any run, with the reasons.
fn never_judged(seen: &[Seen]) -> String {
    let mut open: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut judged = BTreeSet::new();
    let all = seen.iter().flat_map(|one| [&one.alone, &one.behind]).flatten().flat_map(cases);
    for case in all {
        let name = case["name"].as_str().unwrap_or("");
        if ["not-run", "inconclusive"].contains(&case["verdict"].as_str().unwrap_or("")) {
            let why = case["details"].as_array().into_iter().flatten().filter_map(Value::as_str);
            open.entry(name).or_default().extend(why);
        } else {
            judged.insert(name);
        }
    }
    open.retain(|name, _| !judged.contains(name));
    if open.is_empty() {
        return String::new();
    }
    let mut text =
        String::from("These cases came to no verdict in any of the runs:\n\n| case | why |\n|---|---|\n");
    for (name, why) in open {
        let why = why.into_iter().map(|why| told_why(name, why)).collect::<Vec<_>>().join("; ");
        let _ = writeln!(text, "| [{name}](check/{name}.md) | {} |", cell(&why));
    }
    text
}

/// A reason as readers of this page see it: they give no flags.
fn told_why<'a>(name: &str, why: &'a str) -> &'a str {
    match name {
        "retry.token" => "the services know one credential per account, and none is refreshed",
        "race.nodes" => "each service runs as one process group behind one address",
        "caller.revoked" => "the services cannot revoke a credential",
        "window" => "nothing here lets a key expire on demand",
        _ => why,
    }
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;")
}

/// When it was run, with which Semel. Peers that did not run this time are shown with their last result.
fn run(seen: &[Seen]) -> String {
    let reports = || seen.iter().flat_map(|one| [&one.alone, &one.behind]).flatten();
    let told = |name: &str, length: usize| {
        let values = reports().filter_map(|report| report[name].as_str());
        let mut values: Vec<&str> = values.map(|value| value.get(..length).unwrap_or(value)).collect();
        values.sort_unstable();
        values.dedup();
        match values.as_slice() {
            [] => "an unknown one".to_owned(),
            [one] => (*one).to_owned(),
            [first, .., last] => format!("{first} to {last}"),
        }
    };
    format!("run on {} with Semel {}", told("started", "2026-11-19".len()), told("version", usize::MAX))
}

fn cases(report: &Value) -> impl Iterator<Item = &Value> {
    report["cases"].as_array().into_iter().flatten()
}

fn count(report: &Result<Value, String>) -> String {
    let Ok(report) = report else { return "not run".into() };
    let is_bad = |case: &&Value| {
        case["severity"].as_str().is_some_and(|severity| !["client-pain", "note"].contains(&severity))
    };
    let bad = cases(report).filter(is_bad).count();
    let concluded = cases(report)
        .filter(|case| ["pass", "fail"].contains(&case["verdict"].as_str().unwrap_or("")))
        .count();
    format!("{bad} of {concluded} cases")
}

fn section(text: &mut String, title: &str, report: &Result<Value, String>) {
    let report = match report {
        Ok(report) => report,
        Err(why) => {
            let _ = writeln!(text, "**{title}**: could not be run ({why}).\n");
            return;
        }
    };
    let _ = writeln!(text, "**{title}**\n");
    let mut rows = 0;
    for case in cases(report) {
        let name = case["name"].as_str().unwrap_or("");
        let told = match (case["verdict"].as_str(), case["severity"].as_str()) {
            (Some("fail"), Some(severity)) => severity.replace('-', " "),
            (Some(verdict @ ("suspect" | "inconclusive")), _) => verdict.to_owned(),
            _ => continue,
        };
        if rows == 0 {
            text.push_str("| case | | what was seen |\n|---|---|---|\n");
        }
        rows += 1;
        let mut details: Vec<&str> =
            case["details"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        details.dedup();
        let details = cell(&details.join("; "));
        let _ = writeln!(text, "| [{name}](check/{name}.md) | {told} | {details} |");
    }
    if rows > 0 {
        text.push('\n');
    }
    let passed: Vec<_> = cases(report)
        .filter(|case| case["verdict"] == "pass")
        .filter_map(|case| case["name"].as_str())
        .collect();
    let _ = writeln!(text, "Passed: {}.\n", passed.join(", "));
    if let Some(why) = report["stopped"].as_str() {
        let _ = writeln!(text, "The run was stopped: {why}.\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::peers::PEERS;
    use serde_json::json;

    #[test]
    fn cases_without_a_verdict_are_listed_with_their_reasons() {
        let report = |verdict: &str| {
            let case = |name: &str, verdict: &str| json!({ "name": name, "verdict": verdict, "details": ["why|not"] });
            Ok(json!({ "cases": [case("retry", verdict), case("caller.cookie", "not-run")] }))
        };
        let seen = [Seen { peer: &PEERS[0], alone: report("pass"), behind: report("inconclusive") }];
        let text = never_judged(&seen);
        assert!(text.contains("| [caller.cookie](check/caller.cookie.md) | why\\|not |"), "{text}");
        assert!(!text.contains("retry"), "{text}");
    }

    #[test]
    fn the_report_says_when_and_with_what_it_was_run() {
        let report = |day: &str| {
            Ok(json!({ "started": format!("2026-11-{day}T06:00:00Z"), "version": "0.1.0", "cases": [] }))
        };
        let seen = [
            Seen { peer: &PEERS[0], alone: report("19"), behind: report("19") },
            Seen { peer: &PEERS[1], alone: report("20"), behind: Err("it does not start".into()) },
        ];
        assert!(render(&seen[..1]).contains("run on 2026-11-19 with Semel 0.1.0."));
        assert!(render(&seen).contains("run on 2026-11-19 to 2026-11-20 with Semel 0.1.0."));
    }
}
