//! Charging, refunding and asking.

use crate::harness::{Answer, Client, start, terms};
use payment_provider::Settings;
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_charge_comes_once_and_is_answered_alike_however_often_it_is_sent() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let first = client.charge("order-1", "12.50").await;
    assert_eq!(first.status, 201);
    assert!(!first.replayed());
    let mut expected = terms("12.50");
    expected["status"] = "succeeded".into();
    expected["identity"] = "order-1".into();
    expected["attempt"] = 1.into();
    let mut shown = first.json();
    let id = shown.as_object_mut().unwrap().remove("id").unwrap();
    assert!(id.as_str().unwrap().starts_with("ch_"));
    assert_eq!(shown, expected);

    // The same amount in another spelling, and a later attempt, are the same charge.
    for again in [
        client.charge("order-1", "12.5").await,
        client.charge_with("order-1", "12.50", &[("attempt", "2")]).await,
    ] {
        assert_eq!((again.status, &again.body), (201, &first.body));
        assert!(again.replayed());
    }
    assert_eq!(client.charge("order-1", "12.51").await.code(), (422, "identity_reused".into()));
    assert_eq!(client.ask("order-1", 1).await.body, first.body);
    assert_eq!(client.summary().await["charges"], 1);

    // It is still so after a restart.
    let provider = provider.restart(Settings::default()).await;
    let again = provider.client.charge("order-1", "12.50").await;
    assert_eq!((again.status, &again.body, again.replayed()), (201, &first.body, true));
    assert_eq!(provider.client.effects("order-1").await, 1);
}

#[tokio::test]
async fn without_deduplication_the_same_identity_is_charged_again() {
    let provider = start(Settings { deduplicates: false, ..Settings::default() }).await;
    let client = provider.client;
    let (first, second) = (client.charge("order-1", "1.00").await, client.charge("order-1", "1.00").await);
    assert_eq!((first.status, second.status, second.replayed()), (201, 201, false));
    assert_ne!(first.json()["id"], second.json()["id"]);
    assert_eq!(client.effects("order-1").await, 2);
    assert_eq!(client.summary().await["identities_charged_twice"], 1);
    assert_eq!(client.ask("order-1", 1).await.body, first.body);
}

#[tokio::test]
async fn a_refund_gives_back_a_charge() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let charge = client.charge("order-1", "5.00").await.json()["id"].clone();
    let refund = |of: &Value, amount: &str| {
        let mut body = terms(amount);
        body["charge_id"] = of.clone();
        async move { client.try_post("/refunds", "refund-1", &[], &body).await.unwrap() }
    };
    assert_eq!(refund(&"ch_none".into(), "5.00").await.code(), (404, "charge_not_found".into()));
    assert_eq!(refund(&charge, "5.01").await.code(), (422, "refund_too_large".into()));
    let refunded = refund(&charge, "5.00").await;
    assert_eq!(refunded.status, 201);
    assert_eq!(refunded.json()["charge_id"], charge);
    assert!(refunded.json()["id"].as_str().unwrap().starts_with("re_"));
    let again = refund(&charge, "5.00").await;
    assert_eq!((again.replayed(), &again.body), (true, &refunded.body));
    assert_eq!(client.get("/refunds/by-identity/refund-1").await.body, refunded.body);
    assert_eq!(client.get("/refunds/by-identity/order-1").await.status, 404);
    let summary = client.summary().await;
    assert_eq!((&summary["charges"], &summary["refunds"]), (&1.into(), &1.into()));
}

#[tokio::test]
async fn what_is_not_well_formed_is_refused_without_effect() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let with = |name: &str, value: Value| {
        let mut body = terms("1.00");
        body[name] = value;
        body
    };
    for (path, body) in [
        ("/charges", with("amount", 1.into())),
        ("/charges", with("amount", "0.00".into())),
        ("/charges", with("currency", "euro".into())),
        ("/charges", with("reference", "".into())),
        ("/charges", with("charge_id", "ch_1".into())),
        ("/charges", with("ammount", "1.00".into())),
        ("/charges", with("webhook_response", json!({ "status": 99 }))),
        ("/refunds", terms("1.00")),
    ] {
        let answer = client.try_post(path, "order-1", &[], &body).await.unwrap();
        assert_eq!(answer.code(), (400, "request_invalid".into()), "{path} {body}");
    }
    let charge =
        |headers: &'static [(&'static str, &'static str)]| client.charge_with("order-1", "1.00", headers);
    assert_eq!(charge(&[("attempt", "0")]).await.code(), (400, "attempt_invalid".into()));
    assert_eq!(charge(&[("semel-operation-id", "x")]).await.code(), (400, "operation_id_invalid".into()));
    assert_eq!(charge(&[("x-provider-mode", "x")]).await.code(), (400, "mode_unknown".into()));
    assert_eq!(client.charge(&"x".repeat(256), "1.00").await.code(), (400, "identity_invalid".into()));
    assert_eq!(client.ask("order-1", 0).await.code(), (400, "attempt_invalid".into()));
    assert_eq!(client.ask(&"x".repeat(256), 1).await.code(), (400, "identity_invalid".into()));
    let headers = [("content-type", "application/json")];
    let nameless =
        client.try_send(hyper::Method::POST, "/charges", &headers, terms("1.00").to_string()).await;
    assert_eq!(nameless.unwrap().code(), (400, "identity_missing".into()));
    assert_eq!(client.summary().await["entries"], 0);
}

#[tokio::test]
async fn any_text_is_an_identity() {
    let provider = start(Settings::default()).await;
    let (identity, encoded) = ("a/b c?d=ü#%2F", "a%2Fb%20c%3Fd=%C3%BC%23%252F");
    let charged = provider.client.charge(identity, "1.00").await;
    assert_eq!(charged.json()["identity"], identity);
    assert_eq!(provider.client.ask(encoded, 1).await.body, charged.body);
    assert_eq!(provider.client.effects(encoded).await, 1);
}

#[tokio::test]
async fn absence_is_a_promise_that_outlives_the_process() {
    let provider = start(Settings::default()).await;
    let absent = provider.client.ask("order-1", 2).await;
    assert_eq!(absent.code(), (404, "not_found".into()));
    let said = absent.json();
    assert_eq!((&said["identity"], &said["attempt"]), (&"order-1".into(), &2.into()), "what it is about");
    let provider = provider.restart(Settings { deduplicates: false, ..Settings::default() }).await;
    let client = provider.client;
    for attempt in ["1", "2"] {
        let late = client.charge_with("order-1", "1.00", &[("attempt", attempt)]).await;
        assert_eq!(late.code(), (409, "sealed".into()));
    }
    assert_eq!(client.effects("order-1").await, 0);
    assert_eq!(client.charge_with("order-1", "1.00", &[("attempt", "3")]).await.status, 201);
    assert_eq!(client.ask("order-1", 3).await.status, 200);
}

#[tokio::test]
async fn a_provider_that_cannot_be_asked_promises_nothing() {
    let provider = start(Settings { queryable: false, ..Settings::default() }).await;
    assert_eq!(provider.client.ask("order-1", 1).await.code(), (501, "not_supported".into()));
    assert_eq!(provider.client.charge("order-1", "1.00").await.status, 201);
    assert_eq!(provider.client.ask("order-1", 1).await.code(), (501, "not_supported".into()));
}

/// Sends charges that all have arrived, and none of which has had its effect.
async fn held(client: Client, number: u64, identity: &'static str) -> JoinSet<Answer> {
    let mut sending = JoinSet::new();
    for _ in 0..number {
        sending.spawn(client.charge_with(identity, "1.00", &[("x-provider-mode", "stall-before")]));
    }
    client.stalled(number).await;
    sending
}

#[tokio::test]
async fn a_request_that_is_asked_about_on_its_way_has_no_effect_after_a_404() {
    let provider = start(Settings::default()).await;
    let mut late = held(provider.client, 1, "order-1").await;
    assert_eq!(provider.client.ask("order-1", 1).await.status, 404);
    provider.client.delete("/stalls").await;
    assert_eq!(late.join_next().await.unwrap().unwrap().code(), (409, "sealed".into()));
    assert_eq!(provider.client.effects("order-1").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_duplicates_have_one_effect_and_all_get_its_answer() {
    const DUPLICATES: u64 = 24;
    let provider = start(Settings::default()).await;
    let mut sending = held(provider.client, DUPLICATES, "order-1").await;
    provider.client.delete("/stalls").await;
    let mut answers = Vec::new();
    while let Some(answer) = sending.join_next().await {
        answers.push(answer.unwrap());
    }
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body));
    assert_eq!(answers.iter().filter(|answer| !answer.replayed()).count(), 1);
    provider.client.stalled(0).await;
    assert_eq!(provider.client.effects("order-1").await, 1);
}

/// Whoever wins, one of the two is true, and never both: there is nothing, or there was an effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seal_and_an_effect_that_race_never_both_win() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    for number in 0..100 {
        let identity = format!("order-{number}");
        let asking = tokio::spawn(async move { client.ask(&format!("order-{number}"), 1).await });
        let charged = client.charge(&identity, "1.00").await;
        let asked = asking.await.unwrap();
        match (asked.status, charged.code()) {
            (404, (409, code)) if code == "sealed" => assert_eq!(client.effects(&identity).await, 0),
            (200, (201, _)) => assert_eq!((client.effects(&identity).await, asked.body), (1, charged.body)),
            other => panic!("{other:?}"),
        }
    }
}
