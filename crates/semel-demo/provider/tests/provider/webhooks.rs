//! Webhooks: what they say, and that they arrive.

use crate::harness::{Client, start, terms};
use crate::receiver::{Receiver, listen};
use payment_provider::{Settings, Webhook};
use serde_json::{Value, json};

const OPERATION: (&str, &str) = ("semel-operation-id", "01890000-0000-7000-8000-000000000007");

fn with(webhook: Webhook) -> Settings {
    Settings { webhook: Some(webhook), ..Settings::default() }
}

async fn all_delivered(client: Client) {
    client.until(|summary| summary["webhooks_owed"] == 0).await;
}

#[tokio::test]
async fn an_outcome_is_told_with_the_answer_that_was_brought_along_or_with_the_own_one() {
    let mut receiver = listen().await;
    let provider = start(with(receiver.webhook())).await;
    let client = provider.client;
    let charged = client.charge_with("order-1", "1.00", &[OPERATION]).await;
    let told = receiver.next().await;
    let own = json!({
        "status": 201, "headers": { "content-type": "application/json" }, "body": String::from_utf8_lossy(&charged.body),
    });
    let expected = json!({
        "operation_id": OPERATION.1, "attempt": 1, "outcome": "completed", "response": own,
        "type": "charge.succeeded", "data": charged.json(),
    });
    assert_eq!(told.body, expected);

    let paid = json!({ "status": 201, "headers": { "location": "/payments/1" }, "body": "paid" });
    let not_paid = json!({ "status": 402, "headers": {}, "body": "not paid" });
    let mut order = terms("1.00");
    order["webhook_response"] = paid.clone();
    order["webhook_response_declined"] = not_paid.clone();
    for (identity, mode, outcome, response) in
        [("order-2", "drop-after", "completed", &paid), ("order-3", "decline", "failed", &not_paid)]
    {
        let headers = [OPERATION, ("attempt", "2"), ("x-provider-mode", mode)];
        let _answer = client.try_post("/charges", identity, &headers, &order).await;
        let told = receiver.next().await.body;
        assert_eq!((&told["outcome"], &told["response"]), (&outcome.into(), response));
        assert_eq!(told["data"]["identity"], identity);
        assert_eq!(told["attempt"], 2);
    }

    // A replay is no outcome of its own, and neither is a refusal.
    client.charge("order-1", "1.00").await;
    client.charge("order-1", "2.00").await;
    all_delivered(client).await;
    client.charge("order-4", "1.00").await;
    let told = receiver.next().await.body;
    assert_eq!((&told["data"]["identity"], told.get("operation_id")), (&"order-4".into(), None));
    receiver.assert_silent();
}

#[tokio::test]
async fn a_message_that_is_not_taken_comes_again_under_the_same_id() {
    let mut receiver = listen().await;
    receiver.answers(503);
    let provider = start(with(receiver.webhook())).await;
    provider.client.charge("order-1", "1.00").await;
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!((&first.id, &first.body), (&second.id, &second.body));
    assert_eq!(provider.client.summary().await["webhooks_owed"], 1);
    receiver.answers(200);
    all_delivered(provider.client).await;
}

#[tokio::test]
async fn tries_have_an_end_and_a_restart_begins_them_anew() {
    let mut receiver = listen().await;
    receiver.answers(400);
    let mut webhook = receiver.webhook();
    webhook.attempts = 3;
    let provider = start(with(webhook.clone())).await;
    provider.client.charge("order-1", "1.00").await;
    let first = receiver.next().await;
    receiver.next().await;
    receiver.next().await;
    // Another message is taken; the one that was given up is not among what comes after it.
    receiver.answers(200);
    provider.client.charge("order-2", "1.00").await;
    assert_eq!(receiver.next().await.body["data"]["identity"], "order-2");
    provider.client.until(|summary| summary["webhooks_owed"] == 1).await;
    receiver.assert_silent();

    let provider = provider.restart(with(webhook)).await;
    assert_eq!(receiver.next().await.id, first.id);
    all_delivered(provider.client).await;

    // What was taken is not told again.
    let provider = provider.restart(with(receiver.webhook())).await;
    provider.client.charge("order-3", "1.00").await;
    assert_eq!(receiver.next().await.body["data"]["identity"], "order-3");
    receiver.assert_silent();
}

#[tokio::test]
async fn what_happened_without_a_webhook_is_not_told_later() {
    let mut receiver = listen().await;
    let provider = start(Settings::default()).await;
    let client = provider.client;
    client.charge("order-1", "1.00").await;
    client.set(&json!({ "webhook": { "url": receiver.url(), "secret": receiver.secret() } })).await;
    client.charge("order-2", "1.00").await;
    assert_eq!(receiver.next().await.body["data"]["identity"], "order-2");
    all_delivered(client).await;
    client.set(&json!({ "webhook": null })).await;
    client.charge("order-3", "1.00").await;
    client.set(&json!({ "webhook": { "url": receiver.url(), "secret": receiver.secret() } })).await;
    client.charge("order-4", "1.00").await;
    assert_eq!(receiver.next().await.body["data"]["identity"], "order-4");
    receiver.assert_silent();
}

#[tokio::test]
async fn every_message_can_be_sent_twice() {
    let mut receiver = listen().await;
    let mut webhook = receiver.webhook();
    webhook.duplicate = 1.0;
    let provider = start(with(webhook)).await;
    for number in 0..3 {
        provider.client.charge(&format!("order-{number}"), "1.00").await;
        let (first, second) = (receiver.next().await, receiver.next().await);
        assert_eq!((first.id, first.body), (second.id, second.body));
    }
    receiver.assert_silent();
}

/// The order in which twelve outcomes are told.
async fn order_of(receiver: &mut Receiver, webhook: &Webhook, seed: u64) -> Vec<Value> {
    let provider = start(Settings { seed, ..with(webhook.clone()) }).await;
    for number in 0..12 {
        provider.client.charge(&format!("order-{number}"), "1.00").await;
    }
    let mut told = Vec::new();
    for _ in 0..12 {
        told.push(receiver.next().await.body["data"]["identity"].clone());
    }
    told
}

#[tokio::test]
async fn messages_can_be_shuffled_and_the_same_seed_shuffles_them_alike() {
    let mut receiver = listen().await;
    let mut webhook = receiver.webhook();
    webhook.concurrent = 1;
    let in_order = order_of(&mut receiver, &webhook, 7).await;
    assert_eq!(in_order, (0..12).map(|number| json!(format!("order-{number}"))).collect::<Vec<_>>());
    webhook.shuffle = 12;
    let shuffled = order_of(&mut receiver, &webhook, 7).await;
    assert_ne!(shuffled, in_order);
    assert_eq!(order_of(&mut receiver, &webhook, 7).await, shuffled);
    assert_ne!(order_of(&mut receiver, &webhook, 8).await, shuffled);
}
