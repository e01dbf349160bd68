//! A retry is compared by the rules that its record was made with.

use crate::support::{Shop, completed, key, replayed};
use semel::fingerprint::{Command, Recipe};
use semel::{BeginError, Decision, Engine, Incoming, MemoryStore, Policy, Store as _, StoreError};
use semel_testing::store::{Call, Fault};
use serde_json::json;
use std::sync::Arc;

fn command(recipe: &Recipe, value: &serde_json::Value) -> Command {
    Command::new(Arc::new(recipe.clone()), None, value).unwrap()
}

fn plain() -> Recipe {
    Recipe::builder().command("create_payment/1").build().unwrap()
}

fn without_trace() -> Recipe {
    Recipe::builder().command("create_payment/1").ignore("/trace").build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_record_that_was_made_by_an_older_recipe_is_compared_by_it() {
    let shop = Shop::new();
    let first = json!({ "amount": "10.00", "trace": "a" });
    let Decision::Execute(ticket) = shop.ask(&command(&plain(), &first)).await.unwrap() else { panic!() };
    ticket.finish(completed("once")).await.unwrap();

    // Another instance, after a deploy, on the same store: it finds the old recipe there.
    let deployed = shop.elsewhere();
    assert_eq!(replayed(deployed.ask(&command(&without_trace(), &first)).await.unwrap()), "once");
    let other_trace = json!({ "amount": "10.00", "trace": "b" });
    let decision = deployed.ask(&command(&without_trace(), &other_trace)).await.unwrap();
    assert!(matches!(decision, Decision::KeyReused { .. }), "under the old recipe the trace counts");
    assert_eq!(
        deployed.store.batches(Call::Recall).len(),
        2,
        "it is asked for once, and so is the key format"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_while_a_recipe_is_kept_is_a_store_that_failed() {
    let shop = Shop::new();
    shop.store.next(Call::Remember, [Fault::Panic]);
    let asked = json!({ "amount": "10.00" });
    let refused = shop.ask(&command(&plain(), &asked)).await;
    assert!(matches!(refused, Err(BeginError::Store(StoreError::Lost(_)))), "{refused:?}");
    assert_eq!(shop.store.batches(Call::Create), [0; 0], "nothing was reserved");
    assert!(matches!(shop.ask(&command(&plain(), &asked)).await, Ok(Decision::Execute(_))));
}

#[tokio::test(start_paused = true)]
async fn a_recipe_whose_write_is_not_answered_in_time_may_have_been_kept() {
    let shop = Shop::new();
    shop.store.next(Call::Remember, [Fault::Hang]);
    let asked = json!({ "amount": "10.00" });
    let refused = shop.ask(&command(&plain(), &asked)).await;
    assert!(matches!(refused, Err(BeginError::Store(StoreError::Lost(_)))), "{refused:?}");
    assert_eq!(shop.store.batches(Call::Create), [0; 0], "nothing was reserved");
    assert!(matches!(shop.ask(&command(&plain(), &asked)).await, Ok(Decision::Execute(_))));
}

#[tokio::test(start_paused = true)]
async fn a_recipe_that_is_not_to_be_had_gives_no_verdict() {
    let shop = Shop::new();
    let subject = json!({ "amount": "10.00" });
    let Decision::Execute(ticket) = shop.ask(&command(&plain(), &subject)).await.unwrap() else { panic!() };
    let id = ticket.operation_id();
    // A command type that has become another one: nobody can say what it was like before.
    let renamed = Recipe::builder().command("create_payment/2").build().unwrap();
    for _ in 0..2 {
        let decision = shop.ask(&command(&renamed, &subject)).await.unwrap();
        assert!(
            matches!(decision, Decision::CannotTell { operation_id } if operation_id == id),
            "{decision:?}"
        );
    }
    // Unless the application says what it was like.
    let formerly = command(&renamed, &subject).formerly("create_payment/1", &subject).unwrap();
    assert!(matches!(shop.ask(&formerly).await.unwrap(), Decision::InProgress { .. }));
    ticket.finish(completed("once")).await.unwrap();
    assert_eq!(replayed(shop.ask(&formerly).await.unwrap()), "once");
    assert!(matches!(shop.ask(&command(&renamed, &subject)).await.unwrap(), Decision::CannotTell { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_recipe_that_was_altered_gives_no_verdict() {
    let shop = Shop::new();
    let altered = without_trace().to_text().to_owned();
    shop.memory.remember(format!("recipe/{}", plain().id()), altered.into()).await.unwrap();
    let subject = json!({ "amount": "10.00", "trace": "a" });
    let Decision::Execute(ticket) = shop.ask(&command(&plain(), &subject)).await.unwrap() else { panic!() };
    ticket.finish(completed("once")).await.unwrap();
    // Not "another request", which is an invitation to a new key, and to a second payment.
    let newer = Recipe::builder().command("create_payment/1").ignore("/note").build().unwrap();
    let decision = shop.elsewhere().ask(&command(&newer, &subject)).await.unwrap();
    assert!(matches!(decision, Decision::CannotTell { .. }), "{decision:?}");
}

#[tokio::test(start_paused = true)]
async fn a_recipe_that_was_never_kept_gives_no_verdict() {
    // The record was made on another store than the recipe: a store that was put together from pieces.
    let shop = Shop::new();
    let subject = json!({ "amount": "10.00" });
    let Decision::Execute(ticket) = shop.ask(&command(&plain(), &subject)).await.unwrap() else { panic!() };
    ticket.finish(completed("once")).await.unwrap();
    let elsewhere = shop.elsewhere();
    elsewhere.store.next(Call::Recall, [Fault::Unavailable]);
    let refused = elsewhere.ask(&command(&without_trace(), &subject)).await;
    assert!(
        matches!(refused, Err(BeginError::Store(StoreError::Unavailable(_)))),
        "an unavailable store is no verdict either"
    );
    assert_eq!(replayed(elsewhere.ask(&command(&without_trace(), &subject)).await.unwrap()), "once");
}

#[tokio::test(start_paused = true)]
async fn no_record_is_made_by_a_recipe_that_the_store_does_not_have() {
    let shop = Shop::new();
    shop.store.next(Call::Remember, [Fault::Unavailable]);
    assert!(shop.begin().await.is_err());
    assert!(shop.store.batches(Call::Create).is_empty());
    shop.execute().await.finish(completed("once")).await.unwrap();
    shop.decide().await;
    assert_eq!(shop.store.batches(Call::Remember).len(), 2, "once it is there, it is not written again");
}

#[tokio::test(start_paused = true)]
async fn a_different_request_is_refused_whatever_the_state() {
    let shop = Shop::new();
    let other = crate::support::command("99.00");
    let reused = async || matches!(shop.ask(&other).await.unwrap(), Decision::KeyReused { .. });
    let ticket = shop.execute().await;
    assert!(reused().await, "in progress");
    ticket.doubt("timeout").await;
    assert!(reused().await, "unknown");
    ticket.finish(completed("once")).await.unwrap();
    assert!(reused().await, "completed");
    shop.clock.advance(shop.policy.retention);
    assert!(reused().await, "expired");

    let shop = Shop::new();
    shop.execute().await.finish(crate::support::retryable()).await.unwrap();
    assert!(matches!(shop.ask(&other).await.unwrap(), Decision::KeyReused { .. }), "retryable");
    let ticket = shop.execute().await;
    shop.clock.advance(shop.policy.lease);
    assert!(matches!(shop.ask(&other).await.unwrap(), Decision::KeyReused { .. }), "lease over");
    assert_eq!(shop.state().await, Some(semel::State::InProgress), "and it changes nothing");
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_operations_two_tenants_and_two_keys_never_meet() {
    let engine = Engine::new(MemoryStore::new());
    let subject = crate::support::command("10.00");
    let policy = Arc::new(Policy::default());
    let mut ids = Vec::new();
    let base = key();
    for (tenant, operation, key) in [
        (&*base.tenant, &*base.operation, &*base.key),
        ("other", &*base.operation, &*base.key),
        (&*base.tenant, "refund", &*base.key),
        (&*base.tenant, &*base.operation, "key-0000000000000002"),
        // No joining of names may make two of them one.
        ("acmec", "reate_payment", &*base.key),
    ] {
        let key = semel::RecordKey::new(tenant, operation, key);
        let incoming = Incoming { key, subject: &subject, policy: Arc::clone(&policy) };
        let Decision::Execute(ticket) = engine.begin(incoming).await.unwrap() else { panic!() };
        ids.push(ticket.operation_id());
        ticket.finish(completed("once")).await.unwrap();
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}
