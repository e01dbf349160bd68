//! Somebody tells, by a signed message.

use crate::support::{Answer, Gateway, SECRET, Service, config, exchange};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::{SystemTime, UNIX_EPOCH};

const KEY: &str = "key-of-a-payment-0001";

pub(crate) fn rest() -> String {
    format!("[[webhook]]\nsource = \"provider\"\nsecrets = [\"{SECRET}\"]\n")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn signature(secret: &str, id: &str, timestamp: u64, body: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut hmac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    hmac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()))
}

fn deliver(gateway: &Gateway, to: &str, id: &str, timestamp: u64, signature: &str, body: &str) -> Answer {
    let timestamp = timestamp.to_string();
    let headers =
        [("webhook-id", id), ("webhook-timestamp", timestamp.as_str()), ("webhook-signature", signature)];
    exchange(gateway.admin, "POST", &format!("/v1/webhooks/{to}"), &headers, body)
}

/// Delivers a message of the provider's, signed now.
pub(crate) fn sent(gateway: &Gateway, id: &str, body: &Value) -> Answer {
    let (at, body) = (now(), body.to_string());
    deliver(gateway, "provider", id, at, &signature(SECRET, id, at, &body), &body)
}

#[test]
fn a_signed_word_settles_it_however_often_it_comes() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest()));
    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);
    let doubtful = gateway.until(KEY, |operation| operation["state"] == "unknown");
    assert_eq!(doubtful["dead_letter"], false, "a webhook may tell");
    let id = doubtful["operation_id"].as_str().unwrap();
    let body = json!({
        "operation_id": id,
        "outcome": "completed",
        "response": {"status": 201, "headers": {"content-type": "text/plain"}, "body": "paid, says the provider"},
        "type": "charge.succeeded",
    })
    .to_string();

    let forged = SECRET.replace("YS1z", "YS1y");
    let bad =
        deliver(&gateway, "provider", "msg_1", now(), &signature(&forged, "msg_1", now(), &body), &body);
    assert_eq!(bad.status, 401, "{bad:?}");
    let old = now() - 3600;
    let stale = deliver(&gateway, "provider", "msg_1", old, &signature(SECRET, "msg_1", old, &body), &body);
    assert_eq!(stale.status, 401, "{stale:?}");
    let sent = now();
    let right = signature(SECRET, "msg_1", sent, &body);
    assert_eq!(deliver(&gateway, "stranger", "msg_1", sent, &right, &body).status, 404);
    let changed = body.replace("paid", "free");
    assert_eq!(deliver(&gateway, "provider", "msg_1", sent, &right, &changed).status, 401);
    let long = "x".repeat((2 << 20) + 1);
    assert_eq!(deliver(&gateway, "provider", "msg_2", sent, &right, &long).status, 413);
    let untouched = gateway.operation(KEY).unwrap();
    assert_eq!((&untouched["state"], &untouched["version"]), (&json!("unknown"), &doubtful["version"]));

    let settled = deliver(&gateway, "provider", "msg_1", sent, &right, &body);
    assert_eq!(settled.status, 200, "{settled:?}");
    let there = gateway.operation(KEY).unwrap();
    assert_eq!(there["state"], "completed");
    let again =
        deliver(&gateway, "provider", "msg_1", now(), &signature(SECRET, "msg_1", now(), &body), &body);
    assert_eq!(again.status, 200, "{again:?}");
    assert_eq!(
        gateway.operation(KEY).unwrap()["version"],
        there["version"],
        "the second time changes nothing"
    );

    let contrary = json!({"operation_id": id, "outcome": "failed"}).to_string();
    let kept =
        deliver(&gateway, "provider", "msg_3", sent, &signature(SECRET, "msg_3", sent, &contrary), &contrary);
    assert_eq!(kept.status, 200, "{kept:?}");
    let after = gateway.operation(KEY).unwrap();
    assert_eq!(after["state"], "completed");
    assert!(after["history"].to_string().contains("msg_3"), "{after}");

    let retry = gateway.pay(KEY, "answer");
    assert_eq!((retry.status, retry.body.as_str()), (201, "paid, says the provider"));
    assert_eq!(retry.header("content-type"), Some("text/plain"));
    assert_eq!(service.executions(), [json!([id, 1])]);

    let count = |source: &str, result: &str| {
        gateway.metric(&format!("api_idempotency_webhooks_total{{source=\"{source}\",result=\"{result}\"}}"))
    };
    assert_eq!((count("provider", "bad_signature"), count("provider", "out_of_time")), (2, 1));
    assert_eq!((count("provider", "too_large"), count("unknown", "unknown_source")), (1, 1));
    assert_eq!((count("provider", "settled"), count("provider", "kept")), (2, 1));
}

#[test]
fn a_word_that_comes_before_the_owners_is_wanted_again() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest()));
    let _waiting = gateway.begin(KEY, "hold");
    let working = gateway.until(KEY, |operation| operation["state"] == "in_progress");
    let body = json!({"operation_id": working["operation_id"], "outcome": "completed"}).to_string();
    let sent = now();
    let early = deliver(&gateway, "provider", "msg_1", sent, &signature(SECRET, "msg_1", sent, &body), &body);
    assert_eq!(early.status, 409, "{early:?}");
    assert!(early.header("retry-after").is_some());
    assert_eq!(gateway.operation(KEY).unwrap()["state"], "in_progress");
}
