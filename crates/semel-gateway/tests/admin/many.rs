//! Many settled at once: each as by itself, with a result of its own.

use crate::roles::{by, people};
use crate::support::{AdminApi, Answer, Ask, Call, Fault, Opening, problem, resolve};
use semel::{OperationId, State};
use serde_json::{Value, json};
use std::time::Duration;

async fn settle(admin: &AdminApi, name: &str, items: &[Value]) -> Answer {
    let body = json!({ "resolutions": items }).to_string();
    let ask = Ask::new("POST", "/v1/resolutions").line("Host: localhost").body(body);
    by(name, ask).send(&admin.admin).await
}

async fn item(admin: &AdminApi, id: OperationId) -> Value {
    let record = admin.record(id).await;
    json!({"operation_id": id.to_string(), "outcome": "completed", "reason": "in the bank's file",
        "attempt": record.attempt, "version": record.version, "ticket": "OPS-32"})
}

#[tokio::test]
async fn each_is_settled_as_by_itself_and_those_that_moved_on_are_left_alone() {
    let opening = || Opening { people: people(), ..Opening::default() };
    for admin in AdminApi::on_durable_stores(opening).await {
        let (mut ids, mut items) = (Vec::new(), Vec::new());
        for number in 0..5 {
            let id = admin.doubtful(&format!("key-0123456789abcde{number}")).await;
            items.push(item(&admin, id).await);
            ids.push(id);
        }
        let meanwhile = r#"{"outcome":"failed","attempt":1,"reason":"declined"}"#;
        assert_eq!(by("operator", resolve(ids[2], meanwhile)).send(&admin.admin).await.status, 200);
        items.push(json!({"operation_id": "0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4", "outcome": "completed",
            "reason": "x", "attempt": 1, "version": 1}));
        // The lease of the first attempt is not over.
        items[4]["outcome"] = "not_executed".into();
        let refused = settle(&admin, "operator", &items).await;
        assert_eq!((refused.status, problem(&refused)), (403, "admin_forbidden".into()));
        let answer = settle(&admin, "boss", &items).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let answer = answer.json();
        let results = answer["results"].as_array().unwrap();
        let codes: Vec<_> = results.iter().map(|result| result["code"].as_str().unwrap_or("")).collect();
        assert_eq!(
            codes,
            ["", "", "admin_other_version", "", "admin_lease_running", "admin_no_such_operation"]
        );
        assert_eq!(answer["settled"], 3);
        assert_eq!(results[2]["operation"]["state"], "failed_replayable");
        let states =
            [State::Completed, State::Completed, State::FailedReplayable, State::Completed, State::Unknown];
        for (id, state) in ids.iter().zip(states) {
            assert_eq!(admin.record(*id).await.state, state);
        }
        let path = "/v1/audit?action=bulk.item&result=done";
        let audit = by("boss", crate::support::get(path)).send(&admin.admin).await.json();
        assert_eq!(audit["entries"].as_array().unwrap().len(), 3);
        assert_eq!(audit["entries"][0]["ticket"], "OPS-32");
    }
}

#[tokio::test]
async fn once_the_store_fails_the_rest_is_not_tried() {
    let store_timeout = Duration::from_secs(2);
    let admin = AdminApi::with(Opening { people: people(), store_timeout, ..Opening::default() }).await;
    let mut items = Vec::new();
    for number in 0..3 {
        let id = admin.doubtful(&format!("key-0123456789abcde{number}")).await;
        items.push(item(&admin, id).await);
    }
    admin.store.next(Call::Audit, [Fault::None, Fault::Unavailable]);
    let results = settle(&admin, "boss", &items).await.json()["results"].clone();
    assert_eq!(results[0]["settled"], true);
    assert_eq!(results[1]["code"], "admin_store_unavailable");
    assert_eq!(results[2]["code"], "admin_not_tried");
    // The same again: what was settled moved on, and the rest is settled.
    let results = settle(&admin, "boss", &items).await.json()["results"].clone();
    assert_eq!(results[0]["code"], "admin_other_version");
    assert_eq!((&results[1]["settled"], &results[2]["settled"]), (&true.into(), &true.into()));
}

#[tokio::test]
async fn each_names_its_attempt_and_its_version() {
    let admin = AdminApi::with(Opening { people: people(), ..Opening::default() }).await;
    let id = admin.doubtful("key-0123456789abcdef").await;
    for member in ["attempt", "version", "reason", "outcome", "operation_id"] {
        let mut item = item(&admin, id).await;
        item.as_object_mut().unwrap().remove(member);
        let answer = settle(&admin, "boss", &[item]).await;
        assert_eq!((answer.status, problem(&answer)), (400, "admin_body_invalid".into()), "{member}");
    }
    for count in [0, 101] {
        let answer = settle(&admin, "boss", &vec![item(&admin, id).await; count]).await;
        assert_eq!(answer.status, 400, "{count}");
    }
    assert_eq!(admin.record(id).await.state, State::Unknown);
}
