//! Every problem code is driven, under both profiles: which status it has, and where the two differ.

use crate::support::{Answer, Ask, Client, Database, Gateway, Passing, Service, Way, key, post, send_until};
use std::collections::BTreeMap;

const SECTIONS: &str = r#"
[scope]
tenant = ["header:x-account-id"]
[[quota.tenant]]
name = "crowded"
live_keys = 1
[[route]]
operation = "create_payment"
match = "POST /payments"
key = "required"
max_request_body = "1KiB"
max_stored_response = "1KiB"
[[route]]
operation = "create_note"
match = "POST /notes"
retention = "1s"
"#;

fn ask(target: &str, name: &str) -> Ask {
    post(target, name).field("x-account-id: acme")
}

/// Each code with the statuses that it came with, in the order in which they came.
#[derive(Default)]
struct Seen(BTreeMap<String, Vec<u16>>);

impl Seen {
    fn note(&mut self, answer: &Answer) -> String {
        let code = answer.code();
        self.0.entry(code.clone()).or_default().push(answer.status);
        code
    }

    /// Notes an answer that has to be of that code.
    fn is(&mut self, code: &str, answer: &Answer) {
        assert_eq!(self.note(answer), code, "{answer:?}");
    }
}

/// Does everything that a problem is the answer to.
async fn provoked(profile: &str) -> BTreeMap<String, Vec<u16>> {
    let (mut service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let settings = format!("profile = \"{profile}\"\nstore_timeout = \"1s\"");
    let gateway = Gateway::configured(&service, &way.url, &settings, SECTIONS).await;
    let mut seen = Seen::default();

    // Its window is over by the time that the others have been seen.
    assert_eq!(gateway.send(&ask("/notes", "note-of-a-second")).await.status, 201);

    let without = ask("/payments", "").without("Idempotency-Key");
    seen.is("idempotency_key_missing", &gateway.send(&without).await);
    seen.is("idempotency_key_invalid", &gateway.send(&without.key("k3y-with-a-\"-in-it")).await);
    let tenantless = ask("/payments", "payment-of-nobody").without("x-account-id");
    seen.is("idempotency_scope_unresolved", &gateway.send(&tenantless).await);
    let large = ask("/payments", "payment-too-large").body(vec![b'x'; 1025]);
    seen.is("idempotency_request_too_large", &gateway.send(&large).await);

    let payment = ask("/payments", "payment-of-a-thing");
    assert_eq!(gateway.send(&payment).await.status, 201);
    let differs = payment.clone().body(r#"{"note":"b0dy-of-another"}"#);
    seen.is("idempotency_key_reused_with_different_payload", &gateway.send(&differs).await);
    let damage = format!(
        "UPDATE semel_answers SET headers = 'nonsense'
         WHERE operation_id = (SELECT operation_id FROM semel_records WHERE key = '{}')",
        key("payment-of-a-thing")
    );
    assert_eq!(database.execute(&damage).await, 1);
    seen.is("idempotency_record_damaged", &gateway.send(&payment).await);

    let large = ask("/payments", "answer-too-large").field("x-length: 1025");
    assert_eq!(gateway.send(&large).await.body.len(), 1025);
    seen.is("idempotency_response_not_stored", &gateway.send(&large).await);

    let held = ask("/payments", "payment-under-way").field("x-wait: go");
    let mut client = Client::connect(gateway.address).await;
    client.write(held.bytes()).await;
    service.has_executed(4).await;
    seen.is("idempotency_key_in_progress", &gateway.send(&held).await);
    service.let_go("go");
    assert_eq!(client.answer().await.status, 201);

    let doubtful = ask("/payments", "payment-in-doubt").field("x-hang-up: 1");
    for _first_and_retry in 0..2 {
        seen.is("idempotency_outcome_unknown", &gateway.send(&doubtful).await);
    }
    let note = ask("/notes", "note-of-a-second");
    let retry = send_until(gateway.address, &note, |answer| !answer.is_replay()).await;
    seen.is("idempotency_key_expired", &retry);
    let crowded = |name| post("/payments", name).field("x-account-id: crowded");
    assert_eq!(gateway.send(&crowded("payment-with-room")).await.status, 201);
    seen.is("idempotency_quota_exceeded", &gateway.send(&crowded("payment-without-room")).await);
    service.kill();
    let unreached = ask("/payments", "payment-unreached");
    seen.is("idempotency_upstream_unreachable", &gateway.send(&unreached).await);
    way.becomes(Passing::Refused);
    seen.is("idempotency_store_unavailable", &gateway.send(&unreached).await);
    seen.0
}

#[tokio::test]
async fn the_stripe_profile_changes_two_codes_and_no_other() {
    let (ietf, stripe) = tokio::join!(provoked("ietf"), provoked("stripe"));
    let table: [(&str, &[u16], &[u16]); 13] = [
        ("idempotency_key_expired", &[422], &[400]),
        ("idempotency_key_in_progress", &[409], &[409]),
        ("idempotency_key_invalid", &[400], &[400]),
        ("idempotency_key_missing", &[400], &[400]),
        ("idempotency_key_reused_with_different_payload", &[422], &[400]),
        ("idempotency_outcome_unknown", &[504, 409], &[504, 409]),
        ("idempotency_quota_exceeded", &[429], &[429]),
        ("idempotency_record_damaged", &[500], &[500]),
        ("idempotency_request_too_large", &[413], &[413]),
        ("idempotency_response_not_stored", &[409], &[409]),
        ("idempotency_scope_unresolved", &[401], &[401]),
        ("idempotency_store_unavailable", &[503], &[503]),
        ("idempotency_upstream_unreachable", &[502], &[502]),
    ];
    let seen: Vec<_> =
        ietf.iter().zip(&stripe).map(|((code, ietf), (_, stripe))| (&**code, &**ietf, &**stripe)).collect();
    assert_eq!(seen, table);
    assert!(ietf.keys().eq(stripe.keys()));
}

#[tokio::test]
async fn both_spellings_of_a_key_are_one_key() {
    let service = Service::start();
    for profile in ["ietf", "stripe"] {
        let settings = format!("profile = \"{profile}\"");
        let gateway = Gateway::configured(&service, "memory:", &settings, SECTIONS).await;
        let bare = ask("/payments", "payment-spelt-twice");
        let structured = bare.clone().key(&format!("\"{}\"", key("payment-spelt-twice")));
        let before = service.executed();
        let first = gateway.send(&structured).await;
        let retry = gateway.send(&bare).await;
        assert!(first.status == 201 && retry.is_replay(), "{first:?} {retry:?}");
        assert_eq!(first.body, retry.body);
        assert_eq!(service.executed(), before + 1);
    }
}
