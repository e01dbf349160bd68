//! What operators do is in the audit: with the change, before the answer, and for those who may see it.

use crate::roles::{by, people};
use crate::support::{AdminApi, Answer, Ask, Call, Fault, KEY, Opening, get, problem, resolve};
use semel::{OperationId, Settling, State};
use semel_testing::http::Server;
use serde_json::Value;
use std::time::Duration;

const COMPLETED: &str = r#"{"outcome":"completed","reason":"seen at the bank","ticket":"OPS-31","response":{"status":201,"body":"{}"}}"#;

async fn admins() -> [AdminApi; 2] {
    AdminApi::on_durable_stores(|| Opening { people: people(), ..Opening::default() }).await
}

async fn audit(admin: &AdminApi, name: &str, query: &str) -> Vec<Value> {
    let answer = by(name, get(&format!("/v1/audit?{query}"))).send(&admin.admin).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["entries"].as_array().unwrap().clone()
}

async fn post(admin: &Server, name: &str, path: &str, body: &str) -> Answer {
    by(name, Ask::new("POST", path).line("Host: localhost").body(body.to_owned())).send(admin).await
}

#[tokio::test]
async fn a_settlement_is_in_the_audit_with_all_that_is_known_of_it() {
    for admin in admins().await {
        let id = admin.doubtful(KEY).await;
        let ask =
            resolve(id, COMPLETED).header("User-Agent", "semel-cli/0.1.0").header("X-Request-Id", "r-17");
        let ask = ask.header("X-Forwarded-For", "192.0.2.9");
        assert_eq!(by("operator", ask).send(&admin.admin).await.status, 200);
        let [entry] = &audit(&admin, "boss", &format!("target={id}")).await[..] else { panic!("one entry") };
        let operation = admin.record(id).await;
        for (member, value) in [
            ("actor", "token:operator".into()),
            ("kind", "user".into()),
            ("role", "operator".into()),
            ("action", "settle".into()),
            ("result", "done".into()),
            ("tenant", (*operation.key.tenant).into()),
            ("operation", "create_payment".into()),
            ("attempt", Value::from(1)),
            ("version_before", Value::from(operation.version - 1)),
            ("version_after", Value::from(operation.version)),
            ("state_before", "unknown".into()),
            ("state_after", "completed".into()),
            ("outcome", "completed".into()),
            ("reason", "seen at the bank".into()),
            ("ticket", "OPS-31".into()),
            ("response_sha256", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a".into()),
            ("response_bytes", Value::from(2)),
            ("peer", "127.0.0.1".into()),
            ("forwarded_for", "192.0.2.9".into()),
            ("request_id", "r-17".into()),
            ("via", "cli".into()),
        ] {
            assert_eq!(entry[member], value, "{member} of {entry}");
        }
        let text = entry.to_string();
        assert!(!text.contains(KEY) && entry["instance"].is_string(), "{text}");
        assert_eq!(
            admin.store.batches(Call::Swap).len(),
            1,
            "the change and its entry are one write: only doubt was a swap"
        );
    }
}

#[tokio::test]
async fn what_is_refused_is_in_the_audit_too() {
    for admin in admins().await {
        let id = admin.doubtful(KEY).await;
        let refused = post(&admin.admin, "reader", &format!("/v1/operations/{id}/resolve"), COMPLETED).await;
        assert_eq!((refused.status, problem(&refused)), (403, "admin_forbidden".into()));
        let hidden = by("limited", get(&format!("/v1/operations/{id}"))).send(&admin.admin).await;
        assert_eq!((hidden.status, problem(&hidden)), (404, "admin_no_such_operation".into()));
        assert_eq!(by("operator", resolve(id, COMPLETED)).send(&admin.admin).await.status, 200);
        let late = by("operator", resolve(id, COMPLETED)).send(&admin.admin).await;
        assert_eq!((late.status, problem(&late)), (409, "admin_not_unknown".into()));
        let told: Vec<_> = audit(&admin, "boss", "").await;
        let told: Vec<_> = told
            .iter()
            .map(|entry| {
                let text = |member: &str| entry[member].as_str().unwrap_or_default();
                (text("actor"), text("action"), text("result"), text("refusal"))
            })
            .collect();
        assert_eq!(
            told,
            [
                ("token:operator", "settle", "refused", "admin_not_unknown"),
                ("token:operator", "settle", "done", ""),
                ("token:limited", "denied", "refused", "admin_other_tenant"),
                ("token:reader", "denied", "refused", "admin_forbidden"),
            ]
        );
    }
}

#[tokio::test]
async fn without_the_audit_nothing_is_settled_and_nothing_is_revealed() {
    for admin in admins().await {
        let id = admin.doubtful(KEY).await;
        admin.store.always(Call::Audit, Fault::Unavailable);
        let answer = by("operator", resolve(id, COMPLETED)).send(&admin.admin).await;
        assert_eq!((answer.status, problem(&answer)), (503, "admin_store_unavailable".into()));
        assert_eq!(admin.record(id).await.state, State::Unknown);
        let full = format!("/v1/operations/{id}?full_key=true");
        let answer = by("operator", get(&full)).send(&admin.admin).await;
        assert_eq!(answer.status, 503);
        assert!(!answer.text().contains(KEY), "{}", answer.text());
        assert_eq!(by("boss", get("/v1/audit/export")).send(&admin.admin).await.status, 503);
        admin.store.heal();
        assert_eq!(by("operator", get(&full)).send(&admin.admin).await.json()["key"], KEY);
        let [entry] = &audit(&admin, "boss", "action=reveal").await[..] else { panic!("one entry") };
        assert_eq!((&entry["actor"], &entry["note"]), (&"token:operator".into(), &"key".into()));
    }
}

#[tokio::test]
async fn each_sees_of_the_audit_what_they_may() {
    for admin in admins().await {
        let id = admin.doubtful(KEY).await;
        assert_eq!(by("operator", resolve(id, COMPLETED)).send(&admin.admin).await.status, 200);
        assert_eq!(post(&admin.admin, "boss", "/v1/reload", "").await.status, 409);
        let actions = async |name: &str| -> Vec<String> {
            let entries = audit(&admin, name, "").await;
            entries.iter().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(actions("boss").await, ["reload", "reload", "settle"]);
        assert_eq!(actions("reader").await, ["settle"], "what is about no tenant is for admins");
        assert_eq!(actions("limited").await, Vec::<String>::new());
        let tenant = admin.record(id).await.key.tenant.to_string();
        assert_eq!(audit(&admin, "limited", &format!("tenant={tenant}")).await, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn the_audit_is_gone_through_page_by_page_and_filtered() {
    for admin in admins().await {
        let mut ids = Vec::new();
        for number in 0..5 {
            let id = admin.doubtful(&format!("key-0123456789abcde{number}")).await;
            assert_eq!(by("operator", resolve(id, COMPLETED)).send(&admin.admin).await.status, 200);
            ids.insert(0, id);
        }
        for name in ["boss", "reader"] {
            let (mut found, mut cursor) = (Vec::new(), String::new());
            loop {
                let path = format!("/v1/audit?action=settle&limit=2&cursor={cursor}");
                let page = by(name, get(&path)).send(&admin.admin).await.json();
                for entry in page["entries"].as_array().unwrap() {
                    found.push(entry["target"].as_str().unwrap().parse::<OperationId>().unwrap());
                }
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = next.to_owned();
            }
            assert_eq!(found, ids, "{name}");
        }
        let at = audit(&admin, "boss", "").await[2]["at"].as_str().unwrap().to_owned();
        let newer = audit(&admin, "boss", &format!("after={at}")).await.len();
        let older = audit(&admin, "boss", &format!("before={at}")).await.len();
        assert!(newer >= 3 && newer + older == 5, "{newer} and {older}");
        assert_eq!(audit(&admin, "boss", "actor=token:boss").await, Vec::<Value>::new());
        let wrong = by("boss", get("/v1/audit?action=did")).send(&admin.admin).await;
        assert_eq!((wrong.status, &wrong.json()["parameter"]), (400, &"action".into()));
    }
}

#[tokio::test]
async fn an_export_has_no_formulas_and_is_in_the_audit_itself() {
    for admin in admins().await {
        let id = admin.doubtful(KEY).await;
        let body = r#"{"outcome":"completed","reason":"=HYPERLINK(\"http://evil\")\u202e"}"#;
        assert_eq!(by("operator", resolve(id, body)).send(&admin.admin).await.status, 200);
        let answer = by("boss", get("/v1/audit/export?format=csv")).send(&admin.admin).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/csv; charset=utf-8")));
        assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"audit.csv\""));
        let text = answer.text();
        assert!(text.contains(r#""'=HYPERLINK(""http://evil"")\u{202e}""#), "{text}");
        assert_eq!(text.lines().count(), 3, "the heads, the export and the settlement: {text}");
        let answer = by("boss", get("/v1/audit/export?action=export")).send(&admin.admin).await;
        let entries = answer.json();
        assert_eq!(entries.as_array().unwrap().len(), 2);
        assert_eq!(entries[1]["note"], "format=csv");
    }
}

#[tokio::test]
async fn a_poll_that_is_asked_for_is_due_at_once_and_in_the_audit() {
    let settling = Settling::Poll { first: Duration::from_secs(3_600) };
    let opening = || Opening {
        people: people(),
        policy: semel::Policy { settling, ..semel::Policy::default() },
        ..Opening::default()
    };
    for admin in AdminApi::on_durable_stores(opening).await {
        let id = admin.doubtful(KEY).await;
        let before = admin.record(id).await;
        let path = format!("/v1/operations/{id}/poll");
        assert_eq!(post(&admin.admin, "reader", &path, "").await.status, 403);
        let answer = post(&admin.admin, "operator", &path, "").await;
        assert_eq!((answer.status, &answer.json()["state"]), (200, &"unknown".into()));
        let after = admin.record(id).await;
        assert!(after.times.reconcile < before.times.reconcile && after.version == before.version + 1);
        let [entry] = &audit(&admin, "boss", "action=poll").await[..] else { panic!("one entry") };
        assert_eq!((&entry["target"], &entry["state_after"]), (&id.to_string().into(), &"unknown".into()));
        assert_eq!(by("operator", resolve(id, COMPLETED)).send(&admin.admin).await.status, 200);
        let late = post(&admin.admin, "operator", &path, "").await;
        assert_eq!((late.status, problem(&late)), (409, "admin_not_unknown".into()));
    }
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    let answer = post(&admin.admin, "admin", &format!("/v1/operations/{id}/poll"), "").await;
    assert_eq!((answer.status, problem(&answer)), (409, "admin_not_polled".into()), "a webhook settles it");
}
