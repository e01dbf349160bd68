//! SARIF 2.1.0, which code scanning reads.

use super::{CaseResult, Report};
use crate::verdict::{Severity, Verdict};
use serde_json::{Value, json};

/// The report as SARIF. Findings are placed in `file`, the config file of the check, since the API's source is not known.
///
/// # Errors
/// Never in practice: it is plain data.
pub fn render(report: &Report, file: &str) -> Result<String, serde_json::Error> {
    let rules: Vec<Value> = report.cases.iter().map(|case| rule(report, case)).collect();
    let found = |case: &&CaseResult| matches!(case.verdict, Verdict::Fail | Verdict::Suspect);
    let results: Vec<Value> =
        report.cases.iter().filter(found).map(|case| result(report, case, file)).collect();
    let mut notification = Vec::new();
    if let Some(stopped) = &report.stopped {
        notification.push(json!({ "level": "error", "message": { "text": stopped } }));
    }
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "semel check", "semanticVersion": report.version, "rules": rules } },
            "invocations": [{ "executionSuccessful": report.stopped.is_none(), "toolExecutionNotifications": notification }],
            "results": results,
        }]
    });
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

fn rule(report: &Report, case: &CaseResult) -> Value {
    let help = format!("{}. More: {}", case.fix.trim_end_matches('.'), report.more(case));
    let mut rule = json!({
        "id": case.name,
        "shortDescription": { "text": format!("{} → {}", case.sent, case.right) },
        "help": { "text": help },
        "properties": { "tags": ["idempotency"] },
    });
    if let Some(link) = report.link(case) {
        rule["helpUri"] = link.into();
    }
    rule
}

fn result(report: &Report, case: &CaseResult, file: &str) -> Value {
    let level = match case.severity {
        Some(severity) if severity.is_bad() => "error",
        Some(Severity::Note) => "note",
        _ => "warning",
    };
    let mut result = json!({
        "ruleId": case.name,
        "level": level,
        "message": { "text": format!("{}: {}", case.told(), case.details.join("; ")) },
        "locations": [{
            "physicalLocation": { "artifactLocation": { "uri": uri(file) }, "region": { "startLine": 1 } },
            "logicalLocations": [{ "fullyQualifiedName": report.request }],
        }],
        "partialFingerprints": { "case/v1": format!("{} {}", report.request, case.name) },
    });
    if case.known {
        result["suppressions"] = json!([{ "kind": "external", "justification": "in the baseline" }]);
    }
    result
}

/// A path as a reference: what has a meaning in URIs is encoded.
fn uri(path: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(byte);
    path.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_schema_requires_is_there() {
        let mut report = super::super::tests::sample();
        report.cases[2].known = true;
        let sarif: Value = serde_json::from_str(&render(&report, "check.toml").unwrap()).unwrap();
        assert_eq!(sarif["version"], "2.1.0");
        let run = &sarif["runs"][0];
        assert!(run["tool"]["driver"]["name"].is_string());
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let ids: Vec<_> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
        let results = run["results"].as_array().unwrap();
        assert_eq!(results.len(), 4);
        for result in results {
            assert!(ids.contains(&result["ruleId"].as_str().unwrap()));
            assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
            assert!(result["message"]["text"].is_string());
            let place = &result["locations"][0]["physicalLocation"];
            assert_eq!(place["artifactLocation"]["uri"], "check.toml");
        }
        assert_eq!(results.iter().filter(|result| result["suppressions"].is_array()).count(), 1);
        assert!(run["invocations"][0]["executionSuccessful"].is_boolean());
    }
}
