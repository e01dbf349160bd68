//! What is refused: bad signatures, wrong times, malformed bodies, unknown operations.

use super::{NEW_SECRET, SECRET, Sender, completed, headers, intake, signature, told_by_webhook, wall_now};
use crate::support::Shop;
use bytes::Bytes;
use semel::{OperationId, State};
use semel_worker::{WebhookIntake, WebhookResult, WebhookSecret};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn whoever_cannot_sign_is_refused_and_the_store_is_not_even_asked() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let id = shop.doubted(1).await;
    let body = Bytes::from(completed(id).to_string());
    let now = wall_now();
    let good = signature(SECRET, "msg_1", now, &body);
    let calls = shop.store.calls();
    for (id, timestamp, signature) in [
        ("msg_2", now, good.as_str()),
        ("msg_1", now + 1, good.as_str()),
        ("msg_1", now, "v1,AAAA"),
        ("msg_1", now, ""),
        ("msg_1", now, &signature(NEW_SECRET, "msg_1", now, &body)),
    ] {
        let headers = headers(id, timestamp, signature);
        let answer = sender.intake.handle("bank", &headers, body.clone()).await;
        assert_eq!(answer.result, WebhookResult::BadSignature);
        assert_eq!(answer.into_response().status(), 401);
    }
    let headers = headers("msg_1", now, &good);
    let mut altered = body.to_vec();
    altered[20] ^= 1;
    let answer = sender.intake.handle("bank", &headers, Bytes::from(altered)).await;
    assert_eq!(answer.result, WebhookResult::BadSignature);
    for missing in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        let mut headers = headers.clone();
        headers.remove(missing);
        assert_eq!(
            sender.intake.handle("bank", &headers, body.clone()).await.result,
            WebhookResult::BadSignature
        );
    }
    let mut twice = headers.clone();
    twice.append("webhook-id", "msg_2".parse().unwrap());
    assert_eq!(sender.intake.handle("bank", &twice, body.clone()).await.result, WebhookResult::BadSignature);

    assert_eq!(sender.intake.handle("postbank", &headers, body.clone()).await.into_response().status(), 404);
    assert_eq!(sender.count("unknown", WebhookResult::UnknownSource), 1);
    assert_eq!(sender.count("bank", WebhookResult::BadSignature), 10);
    assert_eq!(shop.store.calls(), calls);
    assert_eq!(shop.state(id).await, State::Unknown);
    assert_eq!(sender.intake.handle("bank", &headers, body).await.result, WebhookResult::Settled);
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_replaced_by_way_of_both() {
    let shop = Shop::new(told_by_webhook()).await;
    let intake = WebhookIntake::new(shop.engine.clone(), shop.rules())
        .source("bank", [SECRET, NEW_SECRET].map(|text| WebhookSecret::parse(text).unwrap()));
    for (number, secrets) in [(1, vec![SECRET]), (2, vec![NEW_SECRET]), (3, vec![NEW_SECRET, SECRET])] {
        let id = shop.doubted(number).await;
        let (body, now) = (Bytes::from(completed(id).to_string()), wall_now());
        let signatures: Vec<_> = secrets.iter().map(|secret| signature(secret, "m", now, &body)).collect();
        let answer = intake.handle("bank", &headers("m", now, &signatures.join(" ")), body).await;
        assert_eq!(answer.result, WebhookResult::Settled);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_old_or_from_the_future_is_refused_by_the_time_of_day() {
    let sender = Sender::new().await;
    let id = sender.shop.doubted(1).await;
    let body = Bytes::from(completed(id).to_string());
    let now = wall_now();
    for (sent, result) in [
        (now - 310, WebhookResult::OutOfTime),
        (now + 400, WebhookResult::OutOfTime),
        (0, WebhookResult::OutOfTime),
        (i64::MAX, WebhookResult::OutOfTime),
        (now - 200, WebhookResult::Settled),
    ] {
        let headers = headers("msg_1", sent, &signature(SECRET, "msg_1", sent, &body));
        let answer = sender.intake.handle("bank", &headers, body.clone()).await;
        assert_eq!(answer.result, result, "{sent}");
        assert_eq!(answer.into_response().status(), if result == WebhookResult::Settled { 200 } else { 401 });
    }
    assert_eq!(sender.count("bank", WebhookResult::OutOfTime), 4);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_or_says_nothing_is_refused() {
    let mut sender = Sender::new().await;
    sender.intake = intake(&sender.shop).with_max_body(1000);
    let id = sender.shop.doubted(1).await;
    assert_eq!(sender.send_bytes("m", vec![b' '; 1001]).await.into_response().status(), 413);
    assert_eq!(sender.intake.too_large("bank").result, WebhookResult::TooLarge);
    assert_eq!(sender.count("bank", WebhookResult::TooLarge), 2);
    let op = id.to_string();
    for body in [
        String::new(),
        "{".into(),
        "[]".into(),
        r#"{"operation_id":"nobody","outcome":"completed"}"#.into(),
        format!(r#"{{"operation_id":"{op}","outcome":"done"}}"#),
        format!(r#"{{"operation_id":"{op}","outcome":"completed","response":{{"status":99}}}}"#),
        format!(r#"{{"operation_id":"{op}","outcome":"completed","response":{{"status":"ok"}}}}"#),
        format!(r#"{{"operation_id":"{op}","outcome":"not_executed","response":{{"status":200}}}}"#),
        format!(r#"{{"operation_id":"{op}","outcome":"completed","attempt":-1}}"#),
    ] {
        let answer = sender.send_bytes("m", body.clone().into_bytes()).await;
        assert_eq!(answer.result, WebhookResult::Malformed, "{body}");
        assert!(answer.detail.is_some());
        assert_eq!(answer.into_response().status(), 400);
    }
    // Webhooks about other things are ignored, and answered so that the sender does not repeat them.
    for body in [json!({ "type": "payout.paid" }), json!({ "operation_id": op, "type": "charge.pending" })] {
        assert_eq!(sender.send("m", &body).await.result, WebhookResult::Ignored);
    }
    assert_eq!(sender.shop.state(id).await, State::Unknown);
    assert_eq!(sender.shop.history(id).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_not_here_is_not_found() {
    let sender = Sender::new().await;
    let answer = sender.send("m", &completed(OperationId::from_u128(7))).await;
    assert_eq!(answer.result, WebhookResult::NoSuchOperation);
    assert_eq!(answer.into_response().status(), 404);
}
