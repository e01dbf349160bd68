//! An operator who settles what is in doubt: truthfully, by the provider's ledger, and late. What was found out about one attempt is sometimes
//! sent again when a later one is in doubt, and sometimes sent without the attempt first, which has to be refused.

use crate::client::{Call, call};
use crate::config::AUTHORIZATION;
use crate::outcome::Outcome;
use crate::processes::Processes;
use crate::profile::Profile;
use crate::shop::told_of;
use crate::starts::Notebook;
use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(3);
/// How often the list is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What the operator found out about one attempt.
#[derive(Clone, Debug)]
struct Finding {
    operation_id: String,
    attempt: u64,
    outcome: &'static str,
    response: Option<Value>,
    due: Instant,
    /// How often it is still sent.
    left: u32,
}

/// Whether evidence says which attempt it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named {
    Attempt,
    Nothing,
}

/// What became of evidence that should have changed nothing.
#[derive(Default)]
pub(crate) struct Desk {
    objections: Mutex<Vec<String>>,
    settled: AtomicU64,
    refused: AtomicU64,
}

impl Desk {
    pub(crate) fn objections(&self) -> Vec<String> {
        self.objections.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How much was settled, and how much refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.settled.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed))
    }

    fn note(&self, finding: &Finding, named: Named, status: u16, answer: &Value) {
        let counted = if status == 200 { &self.settled } else { &self.refused };
        counted.fetch_add(1, Ordering::Relaxed);
        if let Some(objection) = objection(finding, named, status, answer) {
            self.objections.lock().unwrap_or_else(PoisonError::into_inner).push(objection);
        }
    }

    /// Settles without end whatever is in doubt.
    pub(crate) async fn work(&self, processes: &Processes, seed: u64) -> Outcome<Infallible> {
        let notebook = Notebook::open(&processes.starts(), None)?;
        let mut rng = Rng::with_seed(seed ^ 0x09E7);
        // With webhooks there is somebody else who settles most of it, and the operator leaves them the time.
        let slow: u64 = if processes.profile == Profile::WebhooksById { 4_000 } else { 1_500 };
        let (mut looked_into, mut findings) = (BTreeSet::new(), Vec::<Finding>::new());
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            for (operation_id, attempt) in unknown(processes, &mut rng).await {
                if looked_into.contains(&(operation_id.clone(), attempt)) {
                    continue;
                }
                if let Some((outcome, response)) =
                    look_into(processes, &notebook, &operation_id, attempt).await
                {
                    looked_into.insert((operation_id.clone(), attempt));
                    let due = Instant::now() + Duration::from_millis(rng.u64(0..slow));
                    let left = if rng.u32(0..3) == 0 { 3 } else { 1 };
                    findings.push(Finding { operation_id, attempt, outcome, response, due, left });
                }
            }
            let now = Instant::now();
            for finding in findings.iter_mut().filter(|finding| finding.due <= now) {
                let site = &processes.sites[rng.usize(0..processes.sites.len())];
                // Of a later attempt it may be untrue. Having to name one, nobody says it of whatever attempt is there by now.
                if finding.outcome != "completed"
                    && rng.u32(0..3) == 0
                    && let Some((status, answer)) = resolve(site.admin, finding, Named::Nothing).await
                    && status < 500
                {
                    self.note(finding, Named::Nothing, status, &answer);
                }
                if let Some((status, answer)) = resolve(site.admin, finding, Named::Attempt).await {
                    // Nobody knows what came of a 5xx: it is sent again as it is.
                    if status < 500 {
                        self.note(finding, Named::Attempt, status, &answer);
                        finding.left -= 1;
                    }
                    // If it is unknown all the same, it is looked into again.
                    if status != 200 {
                        looked_into.remove(&(finding.operation_id.clone(), finding.attempt));
                    }
                }
                finding.due = now + Duration::from_millis(rng.u64(200..3_000));
            }
            findings.retain(|finding| finding.left > 0);
        }
    }
}

/// What is wrong with evidence that was taken: it has to be about the attempt that it settled, and to say so.
fn objection(finding: &Finding, named: Named, status: u16, answer: &Value) -> Option<String> {
    let Finding { operation_id, attempt, outcome, .. } = finding;
    // 409 is the word on a record that is in another state: at another moment it would have been taken.
    if named == Named::Nothing && matches!(status, 200 | 409) {
        return Some(format!("I13 {operation_id}: {outcome} without an attempt got {status} {answer}"));
    }
    if status != 200 {
        return None;
    }
    let settled = answer["attempt"].as_u64();
    // That it happened is true of the operation, whatever the attempt.
    let other = settled.is_some_and(|settled| settled != *attempt) && *outcome != "completed";
    other.then(|| format!("I13 {operation_id}: {outcome} of attempt {attempt} settled attempt {settled:?}"))
}

/// What the admin API lists as unknown: id and attempt.
async fn unknown(processes: &Processes, rng: &mut Rng) -> Vec<(String, u64)> {
    let site = &processes.sites[rng.usize(0..processes.sites.len())];
    let headers = &[("authorization", AUTHORIZATION)];
    let path = "/v1/operations?state=unknown&limit=200";
    let Ok(answer) =
        call(site.admin, Call { method: "GET", path, headers, body: String::new() }, PATIENCE).await
    else {
        return Vec::new();
    };
    let listed = answer.json();
    let listed = listed["operations"].as_array().into_iter().flatten();
    listed
        .filter_map(|one| Some((one["operation_id"].as_str()?.to_owned(), one["attempt"].as_u64()?)))
        .collect()
}

/// What the provider says; having said that it knows of none, it refuses attempts up to this one.
async fn look_into(
    processes: &Processes,
    notebook: &Notebook,
    operation_id: &str,
    attempt: u64,
) -> Option<(&'static str, Option<Value>)> {
    let path = format!("/charges/by-identity/{operation_id}?attempt={attempt}");
    let question = Call { method: "GET", path: &path, headers: &[], body: String::new() };
    let answer = call(processes.provider_at, question, PATIENCE).await.ok()?;
    match answer.status {
        404 => {
            notebook.sealed(operation_id, i64::try_from(attempt).ok()?).ok()?;
            Some(("not_executed", None))
        }
        200 => {
            let receipt = answer.json();
            let (outcome, status) =
                if receipt["status"] == "declined" { ("failed", 402) } else { ("completed", 201) };
            let (status, body) = told_of(status, &receipt, processes.profile == Profile::WebhooksById);
            let kept = json!({ "content-type": "application/json" });
            Some((outcome, Some(json!({ "status": status.as_u16(), "headers": kept, "body": body }))))
        }
        _ => None,
    }
}

async fn resolve(admin: std::net::SocketAddr, finding: &Finding, named: Named) -> Option<(u16, Value)> {
    let mut document = json!({
        "outcome": finding.outcome, "reason": "by the provider's ledger", "operator": "campaign"
    });
    if named == Named::Attempt {
        document["attempt"] = json!(finding.attempt);
    }
    if let Some(response) = &finding.response {
        document["response"] = response.clone();
    }
    let path = format!("/v1/operations/{}/resolve", finding.operation_id);
    let headers = &[("authorization", AUTHORIZATION), ("content-type", "application/json")];
    let resolution = Call { method: "POST", path: &path, headers, body: document.to_string() };
    let answer = call(admin, resolution, PATIENCE).await.ok()?;
    Some((answer.status, answer.json()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(outcome: &'static str) -> Finding {
        let (due, response) = (Instant::now(), None);
        Finding { operation_id: "0198".into(), attempt: 1, outcome, response, due, left: 1 }
    }

    #[test]
    fn evidence_that_settles_another_attempt_is_noticed_unless_it_says_that_it_happened() {
        let settled = |outcome, attempt: u64| {
            objection(&finding(outcome), Named::Attempt, 200, &json!({ "attempt": attempt }))
        };
        for outcome in ["not_executed", "failed", "completed"] {
            assert_eq!(settled(outcome, 1), None);
        }
        assert!(settled("not_executed", 2).is_some_and(|words| words.starts_with("I13")));
        assert!(settled("failed", 2).is_some());
        assert_eq!(settled("completed", 2), None);
    }

    #[test]
    fn evidence_without_an_attempt_has_to_be_refused_as_such() {
        let sent = |status| objection(&finding("not_executed"), Named::Nothing, status, &json!({}));
        for status in [400, 404] {
            assert_eq!(sent(status), None);
        }
        for status in [200, 409] {
            assert!(sent(status).is_some_and(|words| words.starts_with("I13")), "{status}");
        }
    }
}
