//! A dry run says what the client's next retry will get: byte by byte what it then gets.

use crate::support::{AdminApi, Answer, Ask, KEY, Opening, problem, resolve, with_token};
use semel::{OperationId, State};
use serde_json::{Value, json};

async fn tried(admin: &AdminApi, id: OperationId, body: &Value) -> Answer {
    let path = format!("/v1/operations/{id}/resolve?dry_run=true");
    let ask = Ask::new("POST", &path).line("Host: localhost").body(body.to_string());
    with_token(ask).send(&admin.admin).await
}

#[tokio::test]
async fn what_a_dry_run_says_is_what_the_next_retry_gets() {
    let statements = [
        json!({"outcome": "completed", "reason": "x", "response": {"status": 201, "headers": {"content-type": "application/json", "etag": "\"1\""}, "body": "{\"id\":\"pay_1\"}"}}),
        json!({"outcome": "completed", "reason": "x", "resource": {"type": "payment", "id": "pay_9"}}),
        json!({"outcome": "failed", "reason": "x", "attempt": 1, "response": {"status": 402, "body_base64": "AP8="}}),
        json!({"outcome": "failed", "reason": "x", "attempt": 1}),
    ];
    for admin in AdminApi::on_durable_stores(Opening::default).await {
        for (number, statement) in statements.iter().enumerate() {
            let key = format!("key-0123456789abcde{number}");
            let id = admin.doubtful(&key).await;
            let before = admin.record(id).await;
            let run = tried(&admin, id, statement).await;
            assert_eq!(run.status, 200, "{}", run.text());
            assert_eq!(admin.record(id).await, before, "nothing was changed");
            let run = run.json();
            assert_eq!((&run["dry_run"], &run["next_retry"]["executes"]), (&true.into(), &false.into()));
            let settled = with_token(resolve(id, statement.to_string())).send(&admin.admin).await.json();
            assert_eq!(run["operation"]["state"], settled["state"]);
            let retry = admin.pay(&Ask::payment().key(&key)).await;
            let next = &run["next_retry"];
            assert_eq!(next["status"], retry.status, "{statement}");
            match next["body"].as_str() {
                Some(body) if retry.is_replay() && retry.status < 300 => assert_eq!(body, retry.text()),
                Some(body) => {
                    // A problem document, but for the moment at which the window ends.
                    let mut said: Value = serde_json::from_str(body).unwrap();
                    let mut got = retry.json();
                    for document in [&mut said, &mut got] {
                        document.as_object_mut().unwrap().remove("expires_at");
                    }
                    assert_eq!(said, got, "{statement}");
                }
                None => assert_eq!(next["body_base64"], "AP8="),
            }
            for field in next["headers"].as_array().unwrap() {
                let (name, value) = (field["name"].as_str().unwrap(), field["value"].as_str().unwrap());
                if name != "idempotency-key-expires" {
                    assert_eq!(retry.header(name), Some(value), "{name} after {statement}");
                }
            }
        }
    }
}

#[tokio::test]
async fn after_not_executed_a_dry_run_says_that_the_retry_executes() {
    for admin in AdminApi::on_durable_stores(Opening::default).await {
        let id = admin.doubtful(KEY).await;
        let run =
            tried(&admin, id, &json!({"outcome": "not_executed", "reason": "x", "attempt": 1})).await.json();
        assert_eq!(run["next_retry"], json!({"executes": true, "attempt": 2}));
        assert_eq!((&run["operation"]["state"], admin.till.effects()), (&"failed_retryable".into(), 1));
        assert_eq!(admin.record(id).await.state, State::Unknown);
    }
}

#[tokio::test]
async fn a_dry_run_is_refused_as_the_real_one_would_be() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    let other = tried(&admin, id, &json!({"outcome": "failed", "reason": "x", "attempt": 2})).await;
    assert_eq!((other.status, problem(&other)), (409, "admin_other_attempt".into()));
    let moved = tried(&admin, id, &json!({"outcome": "completed", "reason": "x", "version": 1})).await;
    assert_eq!((moved.status, problem(&moved)), (409, "admin_other_version".into()));
    let wrong =
        tried(&admin, id, &json!({"outcome": "completed", "reason": "x", "response": {"status": 99}})).await;
    assert_eq!((wrong.status, problem(&wrong)), (400, "admin_body_invalid".into()));
    assert_eq!(admin.resolve(id, r#"{"outcome":"completed","reason":"seen"}"#).await.status, 200);
    let late = tried(&admin, id, &json!({"outcome": "completed", "reason": "x"})).await;
    assert_eq!((late.status, problem(&late)), (409, "admin_not_unknown".into()));
}
