//! What each run came to, kept in `proof/check/reports`, so that a run of one setup leaves the others on the page as they were.

use crate::step;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

fn file(id: &str, behind: bool) -> PathBuf {
    let way = if behind { "behind" } else { "alone" };
    step::root().join(format!("proof/check/reports/{id}-{way}.json"))
}

/// Keeps what the page tells of a report.
pub(super) fn keep(id: &str, behind: bool, report: &Value) -> Result<(), String> {
    let file = file(id, behind);
    let directory = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = directory.and_then(|()| fs::write(&file, text(report)));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

/// What it came to the last time.
pub(super) fn last(id: &str, behind: bool) -> Result<Value, String> {
    let file = file(id, behind);
    let report = fs::read(&file).map_err(|_| "there is no report of it".to_owned())?;
    serde_json::from_slice(&report).map_err(|error| format!("{}: {error}", file.display()))
}

/// What the page needs of a report, as JSON with one case per line, so that a diff shows what changed.
fn text(report: &Value) -> String {
    let case = |case: &Value| {
        let part = |name: &str| (name.to_owned(), case[name].clone());
        Value::Object(["name", "verdict", "severity", "details"].map(part).into_iter().collect()).to_string()
    };
    let cases: Vec<String> = report["cases"].as_array().into_iter().flatten().map(case).collect();
    let [started, version, stopped] = ["started", "version", "stopped"].map(|name| &report[name]);
    let head = format!(r#""started":{started},"version":{version},"stopped":{stopped}"#);
    format!("{{{head},\"cases\":[\n{}\n]}}\n", cases.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::peers::PEERS;
    use serde_json::json;

    #[test]
    fn a_report_is_kept_without_what_the_page_does_not_tell() {
        let case =
            json!({ "name": "retry", "verdict": "fail", "severity": "stuck", "details": ["a"], "fix": "b" });
        let report = json!({ "started": "now", "version": "1", "stopped": null, "seed": 7, "cases": [case] });
        let kept: Value = serde_json::from_str(&text(&report)).unwrap();
        assert_eq!(kept["cases"][0]["details"], json!(["a"]));
        assert!(kept["seed"].is_null() && kept["cases"][0]["fix"].is_null());
    }

    #[test]
    fn every_setup_on_the_page_has_its_two_reports() {
        for peer in &PEERS {
            for behind in [false, true] {
                let report =
                    last(&peer.id(), behind).unwrap_or_else(|error| panic!("{}: {error}", peer.id()));
                assert!(report["cases"].as_array().is_some_and(|cases| cases.len() > 30), "{}", peer.id());
            }
        }
    }
}
