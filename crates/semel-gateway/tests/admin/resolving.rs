//! A person's word: taken once, on time, and kept with its reason.

use crate::support::{AdminApi, Answer, Ask, Call, Fault, Gate, KEY, Opening, problem};
use semel::{OperationId, State};
use serde_json::{Value, json};

const NOT_EXECUTED: &str = r#"{"outcome":"not_executed","reason":"the bank never saw it","attempt":1}"#;

fn happenings(shown: &Value) -> Vec<String> {
    let history = shown["history"].as_array().unwrap();
    history.iter().map(|line| line["happening"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_completion_is_replayed_to_the_client_and_its_reason_is_kept() {
    for admin in AdminApi::on_every_store().await {
        let id = admin.doubtful(KEY).await;
        let told = admin.pay(&Ask::payment()).await;
        assert_eq!(told.code(), "idempotency_outcome_unknown");
        let body = json!({
            "outcome": "completed",
            "reason": "the bank has it as tx 17",
            "operator": "ada",
            "response": {"status": 201, "headers": {"Content-Type": "application/json"}, "body": "{\"id\":\"pay_1\"}"},
        });
        let answer = admin.resolve(id, body.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let shown = answer.json();
        assert_eq!(shown["state"], "completed");
        assert_eq!(happenings(&shown), ["doubted", "settled_completed"]);
        let last = &shown["history"][1];
        assert_eq!(
            (&last["actor"], &last["note"]),
            (&"operator:token:admin".into(), &"the bank has it as tx 17".into())
        );
        let replay = admin.pay(&Ask::payment()).await;
        assert!(replay.is_replay());
        assert_eq!((replay.status, replay.text()), (201, r#"{"id":"pay_1"}"#));
        assert_eq!(replay.header("content-type"), Some("application/json"));
        assert_eq!(admin.till.effects(), 1, "it was never executed again");
    }
}

#[tokio::test]
async fn bytes_a_failure_and_no_answer_at_all() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful("key-of-the-bytes-0001").await;
    let body = r#"{"outcome":"failed","attempt":1,"reason":"declined","response":{"status":402,"body_base64":"AP8="}}"#;
    assert_eq!(admin.resolve(id, body).await.json()["state"], "failed_replayable");
    let replay = admin.pay(&Ask::payment().key("key-of-the-bytes-0001")).await;
    assert_eq!((replay.status, &replay.body[..]), (402, &[0, 255][..]));

    let id = admin.doubtful("key-of-nothing-000001").await;
    let body = r#"{"outcome":"completed","reason":"seen","resource":{"type":"payment","id":"pay_9"}}"#;
    assert_eq!(admin.resolve(id, body).await.status, 200);
    let told = admin.pay(&Ask::payment().key("key-of-nothing-000001")).await;
    assert_eq!(told.code(), "idempotency_response_not_stored");
    assert_eq!(told.json()["resource"]["id"], "pay_9");
}

#[tokio::test]
async fn after_not_executed_the_retry_executes() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    let shown = admin.resolve(id, NOT_EXECUTED).await.json();
    assert_eq!(
        (&shown["state"], &shown["history"][1]["actor"]),
        (&"failed_retryable".into(), &"operator:token:admin".into())
    );
    let answer = admin.pay(&Ask::payment()).await;
    assert_eq!((answer.status, admin.till.effects()), (201, 2));
    assert_eq!(admin.record(id).await.attempt, 2);
}

#[tokio::test]
async fn a_resolution_that_comes_too_late_is_refused_with_what_is_there() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    assert_eq!(admin.resolve(id, NOT_EXECUTED).await.status, 200);
    admin.pay(&Ask::payment()).await;
    let late = admin.resolve(id, r#"{"outcome":"failed","attempt":2,"reason":"I think so"}"#).await;
    assert_eq!((late.status, problem(&late)), (409, "admin_not_unknown".into()));
    let there = &late.json()["operation"];
    assert_eq!((&there["state"], &there["attempt"]), (&"completed".into(), &2.into()));
    assert_eq!(there["operation_id"], id.to_string());
    assert_eq!(admin.record(id).await.state, State::Completed);

    // In progress is not unknown either: its owner will tell.
    let held = tokio::spawn({
        let (ask, address) = (Ask::payment().key("key-of-the-held-00001").held(), admin.shop.address);
        async move { ask.send_to(address).await }
    });
    admin.till.gate.reached().await;
    let page = admin.get("/v1/operations?state=in_progress").await.json();
    let id: OperationId = page["operations"][0]["operation_id"].as_str().unwrap().parse().unwrap();
    let early = admin.resolve(id, NOT_EXECUTED).await;
    assert_eq!((early.status, &early.json()["operation"]["state"]), (409, &"in_progress".into()));
    admin.till.gate.open();
    assert_eq!(held.await.unwrap().status, 201);
}

#[tokio::test]
async fn what_was_looked_into_is_an_attempt_and_another_one_is_not_settled_by_it() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    assert_eq!(admin.resolve(id, NOT_EXECUTED).await.status, 200);
    assert_eq!(admin.doubtful(KEY).await, id, "the second attempt is in doubt too");
    let of_first = r#"{"outcome":"not_executed","reason":"the bank never saw it","attempt":1}"#;
    let refused = admin.resolve(id, of_first).await;
    assert_eq!((refused.status, problem(&refused)), (409, "admin_other_attempt".into()));
    assert_eq!(refused.json()["operation"]["attempt"], 2);
    for outcome in ["failed", "not_executed"] {
        let version = admin.record(id).await.version;
        let of_none =
            admin.resolve(id, format!(r#"{{"outcome":"{outcome}","reason":"I forget which"}}"#)).await;
        assert_eq!((of_none.status, problem(&of_none)), (400, "admin_attempt_missing".into()));
        assert_eq!(of_none.json()["operation"]["attempt"], 2);
        assert_eq!(admin.record(id).await.version, version, "nothing was changed");
    }
    let of_second = r#"{"outcome":"not_executed","reason":"nor this one","attempt":2}"#;
    assert_eq!(admin.resolve(id, of_second).await.status, 200);
}

#[tokio::test]
async fn of_two_resolvers_at_once_one_wins_and_the_other_sees_what_is_there() {
    // Two max_concurrent_batches, so that both writes are on their way when either is done.
    for on_file in [false, true] {
        let admin =
            AdminApi::with(Opening { max_concurrent_batches: Some(2), on_file, ..Opening::default() }).await;
        let id = admin.doubtful(KEY).await;
        let gate = Gate::new();
        admin.store.next(Call::Audit, [Fault::Held(gate.clone()), Fault::Held(gate.clone())]);
        let resolving = |body: &'static str| {
            let (ask, address) =
                (crate::support::with_token(crate::support::resolve(id, body)), admin.admin.address);
            tokio::spawn(async move { ask.send_to(address).await })
        };
        // Both have found it unknown by the time that either writes.
        let first = resolving(NOT_EXECUTED);
        gate.reached().await;
        let second = resolving(r#"{"outcome":"completed","reason":"the bank has it"}"#);
        gate.reached().await;
        gate.open_for_good();
        let mut answers: [Answer; 2] = [first.await.unwrap(), second.await.unwrap()];
        answers.sort_by_key(|answer| answer.status);
        assert_eq!((answers[0].status, answers[1].status), (200, 409));
        let won = answers[0].json()["state"].clone();
        assert_eq!(answers[1].json()["operation"]["state"], won);
        assert_eq!(won, admin.record(id).await.state.as_str());
        let shown = admin.get(&format!("/v1/operations/{id}")).await.json();
        assert_eq!(happenings(&shown).len(), 2, "doubted, and settled once");
        assert_eq!(admin.counter("reconcile_resolved").await, 1);
    }
}

#[tokio::test]
async fn a_lost_answer_of_the_store_is_read_back_and_the_outcome_settled_once() {
    for admin in
        [AdminApi::open().await, AdminApi::with(Opening { on_file: true, ..Opening::default() }).await]
    {
        for (number, fault) in [Fault::LostAnswer, Fault::LostCall].into_iter().enumerate() {
            let id = admin.doubtful(&format!("key-of-the-lost-{number:05}")).await;
            admin.store.next(Call::Audit, [fault]);
            let answer = admin.resolve(id, NOT_EXECUTED).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(happenings(&answer.json()), ["doubted", "settled_not_executed"]);
        }
        assert_eq!(admin.counter("reconcile_resolved").await, 2);
    }
}

#[tokio::test]
async fn a_store_that_is_away_settles_nothing_and_says_so() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    admin.store.next(Call::Audit, [Fault::Unavailable]);
    let answer = admin.resolve(id, NOT_EXECUTED).await;
    assert_eq!((answer.status, problem(&answer)), (503, "admin_store_unavailable".into()));
    assert_eq!(admin.record(id).await.state, State::Unknown);
    assert_eq!(admin.resolve(id, NOT_EXECUTED).await.status, 200);
}

#[tokio::test]
async fn a_dead_letter_is_settled_like_any_other() {
    let admin = AdminApi::with(Opening { policy: semel::Policy::default(), ..Opening::default() }).await;
    let id = admin.doubtful(KEY).await;
    let listed = admin.get("/v1/operations?dead_letter=true").await.json();
    assert_eq!(listed["operations"][0]["operation_id"], id.to_string());
    let shown = admin.resolve(id, NOT_EXECUTED).await.json();
    assert_eq!((&shown["state"], &shown["dead_letter"]), (&"failed_retryable".into(), &false.into()));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    for (body, said) in [
        ("", "must be JSON"),
        ("{}", "missing field"),
        (r#"{"outcome":"completed"}"#, "reason"),
        (r#"{"outcome":"completed","reason":""}"#, "is empty"),
        (r#"{"outcome":"completed","reason":"x","extra":1}"#, "unknown field `extra`"),
        (
            r#"{"outcome":"completed","reason":"x","response":{"status":201,"headers":{"Set-Cookie":"a"}}}"#,
            "set-cookie",
        ),
    ] {
        let answer = admin.resolve(id, body).await;
        assert_eq!((answer.status, problem(&answer)), (400, "admin_body_invalid".into()), "{body}");
        assert!(answer.text().contains(said), "{body}: {}", answer.text());
    }
    let answer = admin.resolve(id, format!(r#"{{"reason":"{}"}}"#, "x".repeat(5 * 1024 * 1024))).await;
    assert_eq!((answer.status, problem(&answer)), (413, "admin_body_too_large".into()));
    assert_eq!(admin.record(id).await.state, State::Unknown);
}
