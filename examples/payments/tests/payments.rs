//! What the payment service promises to its clients, over real sockets.

mod harness;

use harness::{ACCOUNT, Answer, key, payment, start};
use hyper::Method;
use hyper::body::Bytes;
use payments::{DELAY, HOLD, PaymentsOptions};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn held() -> PaymentsOptions {
    PaymentsOptions { demo_delays: true, ..PaymentsOptions::default() }
}

#[tokio::test]
async fn a_retry_gets_the_same_answer_and_no_second_payment() {
    let service = start(PaymentsOptions::default()).await;
    let body = payment("10.00", "invoice-7781");
    let first = service.pay(&key("retry"), &body).await;
    let retry = service.pay(&key("retry"), &body).await;

    assert_eq!(first.status, 201);
    assert!(!first.replayed() && retry.replayed());
    assert_eq!(first.kept(), retry.kept());
    assert_eq!(service.count(ACCOUNT).await, 1);

    let location = first.headers["location"].to_str().unwrap();
    assert_eq!(location, format!("/payments/{}", first.json()["id"].as_str().unwrap()));
    assert_eq!(service.get(ACCOUNT, location).await.json(), first.json());
}

#[tokio::test]
async fn the_same_body_in_other_spelling_is_the_same_request() {
    let service = start(PaymentsOptions::default()).await;
    let first = service.pay(&key("spelling"), &payment("10.00", "invoice-1")).await;
    let spelt = r#"{ "merchant_reference": "invoice-1", "currency": "EUR", "amount": "10.00" }"#;
    let headers = [
        ("idempotency-key", &*key("spelling")),
        ("x-account-id", ACCOUNT),
        ("content-type", "application/json"),
    ];
    let retry = service.send(Method::POST, "/payments", &headers, spelt).await;
    assert!(retry.replayed());
    assert_eq!(first.kept(), retry.kept());
}

#[tokio::test]
async fn a_key_never_stands_for_another_payment() {
    let service = start(PaymentsOptions::default()).await;
    let first = service.pay(&key("reused"), &payment("10.00", "invoice-1")).await;
    assert_eq!(first.status, 201);
    for other in [payment("100.00", "invoice-1"), payment("10.00", "invoice-2")] {
        let refused = service.pay(&key("reused"), &other).await;
        assert_eq!(refused.status, 422);
        assert_eq!(refused.json()["code"], "idempotency_key_reused_with_different_payload");
    }
    assert_eq!(service.count(ACCOUNT).await, 1);
}

#[tokio::test]
async fn fifty_at_once_make_one_payment() {
    let service = Arc::new(start(held()).await);
    let body = payment("10.00", "invoice-race");
    let race = key("race");
    let send = || {
        let (service, race, body) = (Arc::clone(&service), race.clone(), body.clone());
        tokio::spawn(async move { service.pay_with(ACCOUNT, &race, &[(HOLD, "race")], &body).await })
    };
    let mut racing: Vec<_> = (0..50).map(|_| send()).collect();
    // Whoever owns the operation is held until all others are answered.
    let mut answers: Vec<Answer> = Vec::new();
    while answers.len() < 49 {
        let done = racing.iter().position(tokio::task::JoinHandle::is_finished);
        match done {
            Some(done) => answers.push(racing.swap_remove(done).await.unwrap()),
            None => tokio::task::yield_now().await,
        }
    }
    assert!(answers.iter().all(|answer| answer.status == 409));
    assert!(answers.iter().all(|answer| answer.json()["code"] == "idempotency_key_in_progress"));
    assert!(answers.iter().all(|answer| answer.headers.contains_key("retry-after")));
    assert_eq!(service.count(ACCOUNT).await, 0);
    service.send(Method::DELETE, "/demo/holds/race", &[], Bytes::new()).await;
    assert_eq!(racing.remove(0).await.unwrap().status, 201);
    assert_eq!(service.count(ACCOUNT).await, 1);
}

#[tokio::test]
async fn different_keys_make_different_payments() {
    let service = start(PaymentsOptions::default()).await;
    let one = service.pay(&key("one"), &payment("10.00", "invoice-1")).await;
    let two = service.pay(&key("two"), &payment("10.00", "invoice-2")).await;
    assert_eq!((one.status, two.status), (201, 201));
    assert_ne!(one.json()["id"], two.json()["id"]);
    assert_eq!(service.count(ACCOUNT).await, 2);
}

#[tokio::test]
async fn a_new_key_for_a_paid_reference_gets_the_payment_that_is_there() {
    let service = start(PaymentsOptions::default()).await;
    let first = service.pay(&key("kept"), &payment("10.00", "invoice-1")).await;
    // "10" is the same amount as "10.00": it is the payment that is compared, not its spelling.
    let again = service.pay(&key("lost"), &payment("10", "invoice-1")).await;
    assert_eq!(again.status, 200);
    assert!(!again.replayed());
    assert_eq!(again.json(), first.json());
    let retry = service.pay(&key("lost"), &payment("10", "invoice-1")).await;
    assert!(retry.replayed());
    assert_eq!(retry.kept(), again.kept());
    assert_eq!(service.count(ACCOUNT).await, 1);
}

#[tokio::test]
async fn a_paid_reference_with_other_terms_is_a_conflict_and_stays_one() {
    let service = start(PaymentsOptions::default()).await;
    service.pay(&key("first"), &payment("10.00", "invoice-1")).await;
    let conflict = service.pay(&key("second"), &payment("11.00", "invoice-1")).await;
    assert_eq!(conflict.status, 409);
    assert_eq!(conflict.json()["code"], "merchant_reference_taken");
    let retry = service.pay(&key("second"), &payment("11.00", "invoice-1")).await;
    assert!(retry.replayed());
    assert_eq!(retry.kept(), conflict.kept());
    assert_eq!(service.count(ACCOUNT).await, 1);
}

#[tokio::test]
async fn two_keys_that_race_for_one_reference_make_one_payment() {
    let service = Arc::new(start(PaymentsOptions::default()).await);
    let racing: Vec<_> = (0..20)
        .map(|number| {
            let service = Arc::clone(&service);
            tokio::spawn(async move {
                service.pay(&key(&format!("racer-{number}")), &payment("10.00", "invoice-1")).await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for one in racing {
        answers.push(one.await.unwrap());
    }
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 19);
    assert!(answers.iter().all(|answer| answer.json() == answers[0].json()));
    assert_eq!(service.count(ACCOUNT).await, 1);
}

#[tokio::test]
async fn a_request_that_was_not_understood_leaves_its_key_free() {
    let service = start(PaymentsOptions::default()).await;
    for (body, about) in [
        (payment("10.001", "invoice-1"), "decimals"),
        (payment("-10.00", "invoice-1"), "amount"),
        (payment("0.00", "invoice-1"), "more than zero"),
        (payment("1000000000", "invoice-1"), "at most"),
        (payment("10.00", ""), "merchant reference"),
        (json!({ "amount": 10.0, "currency": "EUR", "merchant_reference": "invoice-1" }), "amount"),
        (json!({ "amount": "10.00", "currency": "eur", "merchant_reference": "invoice-1" }), "capital"),
        (json!({ "amount": "10.00", "currency": "EUR" }), "merchant_reference"),
        (json!({ "amount": "10.00", "currency": "EUR", "merchant_reference": "i", "tip": "1" }), "tip"),
    ] {
        let invalid = service.pay(&key("mistaken"), &body).await;
        assert_eq!(invalid.status, 400, "{body}");
        assert_eq!(invalid.headers["content-type"], "application/problem+json");
        let problem = invalid.json();
        assert_eq!(problem["code"], "payment_invalid");
        assert!(problem["detail"].as_str().unwrap().contains(about), "{problem} should be about {about}");
    }
    assert_eq!(service.count(ACCOUNT).await, 0);
    let right = service.pay(&key("mistaken"), &payment("10.00", "invoice-1")).await;
    assert_eq!(right.status, 201);
    assert!(!right.replayed());
}

#[tokio::test]
async fn what_is_not_json_leaves_its_key_free_too() {
    let service = start(PaymentsOptions::default()).await;
    let key = key("no-json");
    let headers =
        |media_type| [("idempotency-key", &*key), ("x-account-id", ACCOUNT), ("content-type", media_type)];
    let right = payment("10.00", "invoice-1").to_string();
    for (media_type, body) in
        [("application/json", "{"), ("text/plain", right.as_str()), ("application/json", "[]")]
    {
        let invalid = service.send(Method::POST, "/payments", &headers(media_type), body.to_owned()).await;
        assert_eq!(
            (invalid.status, invalid.json()["code"].as_str()),
            (400, Some("payment_invalid")),
            "{media_type} {body}"
        );
    }
    assert_eq!(
        service.send(Method::POST, "/payments", &headers("application/json"), right).await.status,
        201
    );
}

#[tokio::test]
async fn accounts_know_nothing_of_each_other() {
    let service = start(PaymentsOptions::default()).await;
    let body = payment("10.00", "invoice-1");
    let anna = service.pay_with("acct_anna", &key("same"), &[], &body).await;
    let bert = service.pay_with("acct_bert", &key("same"), &[], &body).await;
    assert_eq!((anna.status, bert.status), (201, 201));
    assert!(!bert.replayed());
    assert_ne!(anna.json()["id"], bert.json()["id"]);

    let of_anna = anna.headers["location"].to_str().unwrap();
    assert_eq!(service.get("acct_bert", of_anna).await.status, 404);
    assert_eq!(service.count("acct_bert").await, 1);
}

#[tokio::test]
async fn without_an_account_nothing_is_told() {
    let service = start(PaymentsOptions::default()).await;
    let headers = [("idempotency-key", &*key("nobody")), ("content-type", "application/json")];
    let body = payment("10.00", "invoice-1").to_string();
    let refused = service.send(Method::POST, "/payments", &headers, body).await;
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (401, Some("idempotency_scope_unresolved"))
    );
    let refused = service.send(Method::GET, "/payments", &[], Bytes::new()).await;
    assert_eq!((refused.status, refused.json()["code"].as_str()), (401, Some("account_missing")));
}

#[tokio::test]
async fn demo_delays_are_off_unless_asked_for() {
    let service = start(PaymentsOptions::default()).await;
    let began = Instant::now();
    let asked = [(DELAY, "20s"), (HOLD, "for-ever")];
    assert_eq!(
        service.pay_with(ACCOUNT, &key("hasty"), &asked, &payment("10.00", "invoice-1")).await.status,
        201
    );
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(service.send(Method::GET, "/demo/holds/for-ever", &[], Bytes::new()).await.status, 404);
}

#[tokio::test]
async fn a_slow_handler_is_in_doubt_until_it_ends() {
    let patience = PaymentsOptions {
        lease: Duration::from_secs(20),
        timeout: Duration::from_millis(200),
        demo_delays: true,
        ..PaymentsOptions::default()
    };
    let service = start(patience).await;
    let body = payment("10.00", "invoice-1");
    let first = service.pay_with(ACCOUNT, &key("slow"), &[(HOLD, "slow")], &body).await;
    assert_eq!((first.status, first.json()["code"].as_str()), (504, Some("idempotency_outcome_unknown")));
    let doubt = service.pay(&key("slow"), &body).await;
    assert_eq!((doubt.status, doubt.json()["code"].as_str()), (409, Some("idempotency_outcome_unknown")));

    service.send(Method::DELETE, "/demo/holds/slow", &[], Bytes::new()).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    while service.count(ACCOUNT).await == 0 {
        assert!(Instant::now() < deadline, "the handler's late word counts");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let retry = service.pay(&key("slow"), &body).await;
    assert_eq!(retry.status, 201);
    assert!(retry.replayed());
    assert_eq!(service.count(ACCOUNT).await, 1);
}
