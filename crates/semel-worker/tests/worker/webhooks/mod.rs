//! What others tell, signed.

mod refused;

use crate::interposed::Interposed;
use crate::support::{LEASE, Memory, OPERATION, Place, Shop, Sqlite, answer, key, replayed, secs};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use semel::observe::Event;
use semel::{
    Actor, Body, Decision, Engine, KeyScope, OperationId, Outcome, Policy, Record, Settling, State,
    Store as _, StoreResponse,
};
use semel_conformance::{Loss, LossyStore};
use semel_worker::{ReaperOptions, WebhookAnswer, WebhookIntake, WebhookResult, WebhookSecret};
use serde_json::{Value, json};
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// The provider's side: signs as Standard Webhooks has it.
struct Sender {
    intake: WebhookIntake,
    shop: Shop,
}

/// By the time of day, whatever the store's is: that is what a sender signs.
fn wall_now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_secs().try_into().unwrap()
}

fn signature(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String {
    let secret = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut hmac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
    hmac.update(format!("{id}.{timestamp}.").as_bytes());
    hmac.update(body);
    format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes()))
}

fn headers(id: &str, timestamp: i64, signature: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("webhook-id", id.parse().unwrap());
    headers.insert("webhook-timestamp", timestamp.to_string().parse().unwrap());
    headers.insert("webhook-signature", signature.parse().unwrap());
    headers
}

fn intake(shop: &Shop) -> WebhookIntake {
    WebhookIntake::new(shop.engine.clone(), shop.rules())
        .source("bank", [WebhookSecret::parse(SECRET).unwrap()])
}

fn told_by_webhook() -> Policy {
    Policy { settling: Settling::Webhook, ..Policy::default() }
}

impl Sender {
    async fn new() -> Self {
        Self::to(Shop::new(told_by_webhook()).await)
    }

    fn to(shop: Shop) -> Self {
        Self { intake: intake(&shop), shop }
    }

    /// Delivers a message, properly signed.
    async fn send(&self, id: &str, body: &Value) -> WebhookAnswer {
        self.send_bytes(id, body.to_string().into_bytes()).await
    }

    async fn send_bytes(&self, id: &str, body: Vec<u8>) -> WebhookAnswer {
        let now = wall_now();
        let headers = headers(id, now, &signature(SECRET, id, now, &body));
        self.intake.handle("bank", &headers, Bytes::from(body)).await
    }

    /// Delivers it where the service's own tables are written first.
    async fn send_after(
        &self,
        id: &str,
        body: &Value,
        written: Result<(), &'static str>,
    ) -> (WebhookAnswer, u32) {
        let (now, body) = (wall_now(), body.to_string().into_bytes());
        let headers = headers(id, now, &signature(SECRET, id, now, &body));
        let mut calls = 0;
        let before = |record: Record| {
            calls += 1;
            assert_eq!(record.state, State::Unknown, "it is not settled yet");
            std::future::ready(written)
        };
        (self.intake.handle_after("bank", &headers, Bytes::from(body), before).await, calls)
    }

    fn count(&self, source: &str, result: WebhookResult) -> u64 {
        let counts = self.intake.counts();
        counts.into_iter().find(|(name, kind, _)| (*name, *kind) == (source, result)).unwrap().2
    }
}

/// As the provider of the example says it, with members of its own.
fn completed(id: OperationId) -> Value {
    json!({
        "operation_id": id.to_string(),
        "outcome": "completed",
        "response": { "status": 201, "headers": { "content-type": "text/plain" }, "body": "by the bank" },
        "resource": { "type": "payment", "id": "pay_1" },
        "type": "charge.succeeded",
        "data": { "id": "ch_1" },
    })
}

#[tokio::test(start_paused = true)]
async fn a_signed_word_settles_and_comes_any_number_of_times() {
    let sender = Sender::new().await;
    let id = sender.shop.doubted(1).await;
    for _ in 0..3 {
        let answer = sender.send("msg_1", &completed(id)).await;
        assert_eq!((answer.result, answer.operation_id), (WebhookResult::Settled, Some(id)));
        assert_eq!(answer.into_response().status(), 200);
    }
    let shop = &sender.shop;
    assert_eq!(replayed(shop.request(1).await), (201, "by the bank".into()));
    assert_eq!(shop.record(id).await.unwrap().resource.unwrap().id, "pay_1");
    let history = shop.history(id).await;
    assert_eq!(history.len(), 2, "doubted, settled");
    assert_eq!(history[1].entry.actor, Actor::Webhook("bank".into()));
    assert_eq!(history[1].entry.note.as_deref(), Some("completed, message msg_1"));
    assert_eq!(shop.counted.of(Event::ReconcileResolved), 1);
    assert_eq!(sender.count("bank", WebhookResult::Settled), 3);
}

#[tokio::test(start_paused = true)]
async fn the_services_own_tables_are_written_before_it_is_settled() {
    let sender = Sender::new().await;
    let id = sender.shop.doubted(1).await;
    let (answer, calls) = sender.send_after("msg_1", &completed(id), Err("the disk is full")).await;
    assert_eq!((answer.result, calls), (WebhookResult::StoreError, 1));
    assert_eq!(answer.into_response().status(), 503);
    assert_eq!(sender.shop.state(id).await, State::Unknown, "it comes again");
    let (answer, calls) = sender.send_after("msg_1", &completed(id), Ok(())).await;
    assert_eq!((answer.result, calls), (WebhookResult::Settled, 1));
    assert_eq!(sender.shop.state(id).await, State::Completed);
    let (answer, calls) = sender.send_after("msg_1", &completed(id), Ok(())).await;
    assert_eq!((answer.result, calls), (WebhookResult::Settled, 0), "all of it was done before");
}

#[tokio::test(start_paused = true)]
async fn what_falls_into_doubt_while_a_word_is_looked_at_is_settled_by_the_next_delivery() {
    let sender = Sender::new().await;
    let ticket = sender.shop.execute(1).await;
    let id = ticket.operation_id();
    sender.shop.store.after_the_next_find(async move {
        ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    });
    let (answer, calls) = sender.send_after("msg_1", &completed(id), Ok(())).await;
    assert_eq!((answer.result, calls), (WebhookResult::TooEarly, 0));
    assert_eq!(sender.shop.state(id).await, State::Unknown, "nothing was written before it");
    let (answer, calls) = sender.send_after("msg_1", &completed(id), Ok(())).await;
    assert_eq!((answer.result, calls), (WebhookResult::Settled, 1));
}

/// A message that names the key of this request, and no operation.
fn by_key(number: u32, outcome: &str) -> Value {
    json!({ "tenant": "acme", "operation": OPERATION, "key": &*key(number).key, "outcome": outcome, "attempt": 1 })
}

#[tokio::test(start_paused = true)]
async fn a_word_by_key_finds_the_record_and_settles_nothing() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let answer = sender.send("msg_0", &by_key(1, "completed")).await;
    assert_eq!((answer.result, answer.operation_id), (WebhookResult::Ignored, None), "nothing is there");
    assert_eq!(answer.into_response().status(), 200, "it need not come again");

    let ticket = shop.execute(1).await;
    let id = ticket.operation_id();
    assert_eq!(sender.send("msg_1", &by_key(1, "completed")).await.result, WebhookResult::Kept);
    ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    shop.pass(LEASE);
    for (message, outcome) in [("msg_1", "completed"), ("msg_2", "failed"), ("msg_3", "not_executed")] {
        for _ in 0..3 {
            let (answer, calls) = sender.send_after(message, &by_key(1, outcome), Ok(())).await;
            assert_eq!((answer.result, answer.operation_id, calls), (WebhookResult::Kept, Some(id), 0));
            assert!(answer.detail.unwrap().contains("`operation_id`"));
        }
    }
    assert_eq!(shop.state(id).await, State::Unknown);
    assert_eq!(
        shop.happenings(id).await,
        ["remarked", "doubted", "remarked", "remarked"],
        "each message once"
    );
    let half = json!({ "tenant": "acme", "key": &*key(1).key, "outcome": "failed" });
    assert_eq!(sender.send("msg_4", &half).await.result, WebhookResult::Malformed);
}

#[tokio::test(start_paused = true)]
async fn a_word_by_a_key_across_operations_is_about_the_operation_that_it_names_alone() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let id = shop.abandoned_as(key(1).in_scope(KeyScope::Tenant)).await;
    let answer = sender.send("msg_1", &by_key(1, "completed")).await;
    assert_eq!((answer.result, answer.operation_id), (WebhookResult::Kept, Some(id)));
    let mut other = by_key(1, "completed");
    other["operation"] = "another".into();
    let answer = sender.send("msg_2", &other).await;
    assert_eq!((answer.result, answer.operation_id), (WebhookResult::Ignored, None));
    assert_eq!(shop.happenings(id).await.len(), 1);
}

/// Delivered again while the first delivery is being written down, and after that a thousand times, a message is one line. A thousand
/// messages are no more lines than fit.
#[tokio::test(start_paused = true)]
async fn what_settles_nothing_is_kept_once_however_often_it_is_delivered() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let id = shop.doubted(1).await;
    let vague = json!({ "operation_id": id.to_string(), "outcome": "failed" });
    for (message, body) in [("msg_1", by_key(1, "completed")), ("msg_2", vague)] {
        let before = shop.history(id).await.len();
        shop.store.before_the_next_swap({
            // By another process: this one's writes wait for the swap.
            let elsewhere = Shop { engine: Engine::new(shop.store.clone()), ..shop.clone() };
            let (again, body) = (Sender::to(elsewhere), body.clone());
            async move { assert_eq!(again.send(message, &body).await.result, WebhookResult::Kept) }
        });
        for _ in 0..1000 {
            assert_eq!(sender.send(message, &body).await.result, WebhookResult::Kept);
        }
        assert_eq!(shop.history(id).await.len(), before + 1, "{message}");
    }
    for number in 0..1000 {
        let answer = sender.send(&format!("flood_{number}"), &by_key(1, "completed")).await;
        assert_eq!(answer.result, WebhookResult::Kept);
    }
    assert_eq!(shop.history(id).await.len(), 100);
    assert_eq!(shop.state(id).await, State::Unknown);
}

/// The first operation under the key was released, which leaves no trace. The bank's word about it comes when the key stands for a second
/// one, which may have been carried out.
#[tokio::test(start_paused = true)]
async fn what_is_told_of_a_key_says_nothing_of_the_next_operation_under_it() {
    for outcome in ["completed", "failed", "not_executed"] {
        let sender = Sender::new().await;
        let shop = &sender.shop;
        let first = shop.execute(1).await;
        let earlier = first.operation_id();
        first.finish(Outcome::Released).await.unwrap();
        assert_eq!(shop.record(earlier).await, None);
        let by_key = by_key(1, outcome);

        let second = shop.execute(1).await;
        let id = second.operation_id();
        assert_ne!(id, earlier);
        // Whatever comes later, it will not count then either: it need not be sent again.
        assert_eq!(sender.send("msg_1", &by_key).await.result, WebhookResult::Kept);
        second.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
        shop.pass(LEASE);
        for _ in 0..3 {
            let (answer, calls) = sender.send_after("msg_1", &by_key, Ok(())).await;
            assert_eq!((answer.result, answer.operation_id, calls), (WebhookResult::Kept, Some(id), 0));
            assert!(answer.detail.unwrap().contains("`operation_id`"));
        }
        assert_eq!(shop.state(id).await, State::Unknown);
        assert!(matches!(shop.request(1).await, Decision::Unknown { .. }), "nothing executes");
        assert_eq!(shop.happenings(id).await, ["remarked", "doubted"], "it is kept once");

        let precise = json!({ "operation_id": id.to_string(), "outcome": outcome, "attempt": 1 });
        assert_eq!(sender.send("msg_2", &precise).await.result, WebhookResult::Settled);
        assert_eq!(sender.send("msg_3", &by_key).await.result, WebhookResult::Known);
    }
}

/// The operation that it is about goes away while its word is looked at, and the next one takes its key.
#[tokio::test(start_paused = true)]
async fn a_word_about_an_operation_does_not_come_into_the_history_of_the_next_one_under_its_key() {
    for (in_doubt, result) in [(false, WebhookResult::TooEarly), (true, WebhookResult::NoSuchOperation)] {
        let sender = Sender::new().await;
        let shop = &sender.shop;
        let earlier = if in_doubt { shop.doubted(1).await } else { shop.abandoned(1).await };
        let record = shop.record(earlier).await.unwrap();
        let (tell, later) = oneshot::channel();
        shop.store.before_the_next_swap({
            let shop = shop.clone();
            async move {
                shop.store.remove(vec![record.expected()]).await.unwrap();
                tell.send(shop.abandoned(1).await).unwrap();
            }
        });
        assert_eq!(sender.send("msg_1", &completed(earlier)).await.result, result);
        let id = later.await.unwrap();
        assert_ne!(id, earlier);
        assert_eq!((shop.record(earlier).await, shop.history(id).await.len()), (None, 0));
        assert_eq!(shop.state(id).await, State::InProgress);
        let again = sender.send("msg_1", &completed(earlier)).await.result;
        assert_eq!((again, shop.history(id).await.len()), (WebhookResult::NoSuchOperation, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_policy_does_not_keep_is_not_kept() {
    let policy = Policy { store_response: StoreResponse::Reference, ..told_by_webhook() };
    let sender = Sender::to(Shop::new(policy).await);
    let id = sender.shop.doubted(1).await;
    sender.send("msg_1", &completed(id)).await;
    let record = sender.shop.record(id).await.unwrap();
    assert_eq!(record.response.unwrap().body, Body::NotStored);
    assert_eq!(record.resource.unwrap().id, "pay_1");
}

#[tokio::test(start_paused = true)]
async fn what_comes_while_the_owner_is_at_work_is_kept_once_and_wanted_again() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let id = shop.abandoned(1).await;
    shop.pass(secs(10));
    for _ in 0..5 {
        let answer = sender.send("msg_1", &completed(id)).await;
        assert_eq!((answer.result, answer.retry_after), (WebhookResult::TooEarly, Some(secs(20))));
        let response = answer.into_response();
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers()["retry-after"], "20");
    }
    assert_eq!(shop.state(id).await, State::InProgress);
    assert_eq!(shop.notes(id).await, ["completed, message msg_1"], "once");
    shop.pass(secs(20));
    shop.watch().round().await.unwrap();
    assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::Settled);
    assert_eq!(shop.happenings(id).await, ["remarked", "doubted", "settled_completed"]);
    assert_eq!(replayed(shop.request(1).await), (201, "by the bank".into()));
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_not_disturbed_by_what_comes_early() {
    let sender = Sender::new().await;
    let ticket = sender.shop.execute(1).await;
    let id = ticket.operation_id();
    assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::TooEarly);
    let own = Outcome::Completed { response: Some(answer(201, "the owner's")), resource: None };
    ticket.finish(own).await.unwrap();
    assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::Known);
    assert_eq!(replayed(sender.shop.request(1).await), (201, "the owner's".into()));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_already_and_what_contradicts_is_kept_once_and_changes_nothing() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let id = shop.completed(1, "paid").await;
    let before = shop.record(id).await.unwrap();
    for _ in 0..3 {
        assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::Known);
    }
    let declined = json!({ "operation_id": id.to_string(), "outcome": "failed" });
    for _ in 0..3 {
        let answer = sender.send("msg_2", &declined).await;
        assert_eq!(answer.result, WebhookResult::Kept);
        assert_eq!(answer.into_response().status(), 200, "it need not come again");
    }
    assert_eq!(shop.notes(id).await, ["completed, message msg_1", "failed, message msg_2"]);
    let after = shop.record(id).await.unwrap();
    assert_eq!((after.state, &after.response, after.times), (before.state, &before.response, before.times));
    assert_eq!(replayed(shop.request(1).await), (201, "paid".into()));
    // However many messages contradict, the history does not grow without end.
    for number in 0..150 {
        sender.send(&format!("flood_{number}"), &declined).await;
    }
    assert_eq!(shop.history(id).await.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn after_doubt_what_agrees_is_kept_until_the_window_is_over() {
    let sender = Sender::new().await;
    let id = sender.shop.doubted(1).await;
    assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::Settled);
    let settled = sender.shop.record(id).await.unwrap();
    for _ in 0..3 {
        assert_eq!(sender.send("msg_2", &completed(id)).await.result, WebhookResult::Known);
    }
    assert_eq!(sender.shop.happenings(id).await, ["doubted", "settled_completed", "remarked"]);
    assert_eq!(sender.shop.notes(id).await[2], "completed, message msg_2");
    let after = sender.shop.record(id).await.unwrap();
    assert_eq!(
        (after.state, &after.response, after.times),
        (settled.state, &settled.response, settled.times)
    );
    // What is over is not written to any more.
    sender.shop.pass(sender.shop.policy.retention);
    sender.shop.reaper(ReaperOptions::default()).round().await.unwrap();
    assert_eq!(sender.send("msg_3", &completed(id)).await.result, WebhookResult::Known);
    assert_eq!(sender.shop.history(id).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn out_of_order_the_first_that_settles_counts_and_the_other_is_kept() {
    let sender = Sender::new().await;
    let id = sender.shop.doubted(1).await;
    let declined = json!({ "operation_id": id.to_string(), "outcome": "failed" });
    assert_eq!(sender.send("msg_2", &completed(id)).await.result, WebhookResult::Settled);
    assert_eq!(sender.send("msg_1", &declined).await.result, WebhookResult::Kept);
    assert_eq!(sender.send("msg_2", &completed(id)).await.result, WebhookResult::Settled);
    assert_eq!(sender.shop.happenings(id).await, ["doubted", "settled_completed", "remarked"]);
    assert_eq!(sender.shop.state(id).await, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn that_it_did_not_happen_counts_once_the_lease_is_over() {
    let sender = Sender::new().await;
    let shop = &sender.shop;
    let id = shop.doubted(1).await;
    // Without its attempt it settles nothing, now or later: it need not come again.
    for outcome in ["failed", "not_executed"] {
        let vague = json!({ "operation_id": id.to_string(), "outcome": outcome });
        let answer = sender.send("vague", &vague).await;
        assert_eq!(answer.result, WebhookResult::Kept);
        assert!(answer.detail.unwrap().contains("`attempt`"));
    }
    let nothing = json!({ "operation_id": id.to_string(), "outcome": "not_executed", "attempt": 1 });
    let answer = sender.send("msg_1", &nothing).await;
    assert_eq!((answer.result, answer.retry_after), (WebhookResult::TooEarly, Some(LEASE)));
    shop.pass(LEASE);
    assert_eq!(sender.send("msg_1", &nothing).await.result, WebhookResult::Settled);
    let ticket = shop.execute(1).await;
    assert_eq!(ticket.attempt(), 2);
    // Delivered once more, it says nothing of the second attempt, which is in progress and then unknown.
    assert_eq!(sender.send("msg_1", &nothing).await.result, WebhookResult::Settled);
    ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    shop.pass(LEASE);
    assert_eq!(sender.send("msg_1", &nothing).await.result, WebhookResult::Settled);
    assert_eq!(shop.state(id).await, State::Unknown);
    // Another message may be about the first attempt: it is kept, and settles nothing.
    for outcome in ["failed", "not_executed"] {
        let vague = json!({ "operation_id": id.to_string(), "outcome": outcome });
        let answer = sender.send(&format!("vague_{outcome}"), &vague).await;
        assert_eq!(answer.result, WebhookResult::Kept);
        assert!(answer.detail.unwrap().contains("`attempt`"));
        let earlier = json!({ "operation_id": id.to_string(), "outcome": outcome, "attempt": 1 });
        let answer = sender.send(&format!("earlier_{outcome}"), &earlier).await;
        assert_eq!(answer.result, WebhookResult::Kept);
        assert!(answer.detail.unwrap().contains("attempt 2 is the one in doubt"));
    }
    assert_eq!(shop.state(id).await, State::Unknown);
    let precise = json!({ "operation_id": id.to_string(), "outcome": "failed", "attempt": 2 });
    assert_eq!(sender.send("msg_2", &precise).await.result, WebhookResult::Settled);
    assert_eq!(shop.state(id).await, State::FailedReplayable);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_settled_by_a_word_that_comes_after_all() {
    let sender = Sender::to(Shop::new(Policy::default()).await);
    let id = sender.shop.doubted(1).await;
    assert!(sender.shop.record(id).await.unwrap().dead_letter);
    assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::Settled);
    assert!(!sender.shop.record(id).await.unwrap().dead_letter);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_or_loses_answers_costs_another_delivery() {
    let sender = Sender::new().await;
    let id = sender.shop.doubted(1).await;
    let (body, now) = (Bytes::from(completed(id).to_string()), wall_now());
    let headers = headers("msg_1", now, &signature(SECRET, "msg_1", now, &body));
    sender.shop.store.be_away(true);
    let answer = sender.intake.handle("bank", &headers, body.clone()).await;
    assert_eq!(answer.result, WebhookResult::StoreError);
    let response = answer.into_response();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    sender.shop.store.be_away(false);
    assert_eq!(sender.intake.handle("bank", &headers, body).await.result, WebhookResult::Settled);

    for loss in [Loss::Answer, Loss::Call] {
        let place = Memory::new();
        let shop = Shop::at(&place, told_by_webhook()).await;
        let id = shop.doubted(1).await;
        let lossy = LossyStore::losing(place.open().await, [loss]);
        let sender = Sender::to(shop.elsewhere(Interposed::over(lossy)));
        assert_eq!(sender.send("msg_1", &completed(id)).await.result, WebhookResult::Settled);
        assert_eq!(shop.happenings(id).await, ["doubted", "settled_completed"]);
    }
}

#[tokio::test]
async fn of_many_deliveries_at_once_at_two_instances_one_settles() {
    let place = Sqlite::new();
    let shop = Shop::at(&place, told_by_webhook()).await;
    let id = shop.doubted(1).await;
    let elsewhere = shop.elsewhere(Interposed::over(place.open().await));
    let senders = [Arc::new(Sender::to(shop.clone())), Arc::new(Sender::to(elsewhere.clone()))];
    let deliveries: Vec<_> = (0..20)
        .map(|number| {
            let sender = Arc::clone(&senders[number % 2]);
            tokio::spawn(async move { sender.send("msg_1", &completed(id)).await.result })
        })
        .collect();
    for delivery in deliveries {
        assert_eq!(delivery.await.unwrap(), WebhookResult::Settled);
    }
    assert_eq!(shop.happenings(id).await, ["doubted", "settled_completed"]);
    let resolved = |shop: &Shop| shop.counted.of(Event::ReconcileResolved);
    assert_eq!(resolved(&shop) + resolved(&elsewhere), 1);
    assert!(matches!(shop.request(1).await, Decision::Replay(_)));
}

#[test]
fn an_answer_tells_whole_seconds() {
    let answer = WebhookAnswer {
        result: WebhookResult::TooEarly,
        operation_id: None,
        detail: None,
        retry_after: Some(Duration::from_millis(1001)),
    };
    assert_eq!(answer.into_response().headers()["retry-after"], "2");
}
