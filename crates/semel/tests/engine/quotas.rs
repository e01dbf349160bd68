//! Quotas: new keys are refused past them, and nothing else ever is.

use crate::support::{STORE_TIMEOUT, Shop, command, completed, key, replayed, ticket};
use semel::{
    BeginError, Decision, EngineOptions, Filter, Outcome, Policy, Quota, Quotas, Rate, RecordKey, Store as _,
};
use semel_testing::store::{Call, Fault, Gate};
use std::collections::HashMap;
use std::time::Duration;

/// How long the store's word on the number of keys is good.
const WORD: Duration = Duration::from_secs(5);

fn shop(default: Quota) -> Shop {
    let quotas = Quotas { default, tenants: HashMap::from([("free".into(), Quota::default())]) };
    Shop::built(Policy::default(), EngineOptions { quotas, ..EngineOptions::default() })
}

fn by_rate(per_second: u32, burst: u32) -> Quota {
    Quota { new_keys: Some(Rate { per_second, burst }), ..Quota::default() }
}

fn by_number(live_keys: u64) -> Quota {
    Quota { live_keys: Some(live_keys), ..Quota::default() }
}

fn numbered(tenant: &str, number: u32) -> RecordKey {
    RecordKey::new(tenant, key().operation, format!("key-{number:016}"))
}

async fn ask(shop: &Shop, tenant: &str, number: u32) -> Result<Decision, BeginError> {
    shop.ask_under(numbered(tenant, number), &command("10.00")).await
}

/// Executes under a new key, to the end.
async fn done(shop: &Shop, tenant: &str, number: u32) {
    ticket(ask(shop, tenant, number).await.unwrap()).finish(completed("once")).await.unwrap();
}

async fn is_refused(shop: &Shop, tenant: &str, number: u32) -> Duration {
    match ask(shop, tenant, number).await.unwrap() {
        Decision::QuotaExceeded { retry_after } => retry_after,
        other => panic!("it was to be refused, and got {other:?}"),
    }
}

async fn stored(shop: &Shop) -> usize {
    shop.memory.list(Filter::default(), None, usize::MAX).await.unwrap().records.len()
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_makes_keys_too_fast_is_refused_new_ones_alone() {
    let shop = shop(by_rate(2, 3));
    for number in 0..3 {
        done(&shop, "acme", number).await;
    }
    assert_eq!(is_refused(&shop, "acme", 3).await, Duration::from_millis(500));
    assert_eq!(stored(&shop).await, 3, "nothing is left of what was refused");
    for number in 0..3 {
        assert_eq!(replayed(ask(&shop, "acme", number).await.unwrap()), "once");
    }
    let reused = shop.ask_under(numbered("acme", 0), &command("11.00")).await.unwrap();
    assert!(matches!(reused, Decision::KeyReused { .. }));
    done(&shop, "other", 3).await;
    for number in 0..10 {
        done(&shop, "free", number).await;
    }
    tokio::time::advance(Duration::from_millis(500)).await;
    done(&shop, "acme", 3).await;
    is_refused(&shop, "acme", 4).await;
    let counted: HashMap<_, _> = shop.counted.events().into_iter().collect();
    assert_eq!((counted["quota_refused"], counted["reserve_created"]), (2, 15));
}

#[tokio::test(start_paused = true)]
async fn retries_use_nothing_up() {
    let shop = shop(Quota { live_keys: Some(2), ..by_rate(1, 2) });
    done(&shop, "acme", 0).await;
    for _ in 0..10 {
        assert_eq!(replayed(ask(&shop, "acme", 0).await.unwrap()), "once");
    }
    // Neither does an attempt that the store did not take.
    shop.store.next(Call::Create, [Fault::Unavailable, Fault::Unavailable]);
    for _ in 0..2 {
        assert!(matches!(ask(&shop, "acme", 1).await, Err(BeginError::Store(_))));
    }
    done(&shop, "acme", 1).await;
    is_refused(&shop, "acme", 2).await;
}

#[tokio::test(start_paused = true)]
async fn what_may_be_retried_is_executed_however_many_keys_there_are() {
    let shop = shop(by_number(1));
    let first = ticket(ask(&shop, "acme", 0).await.unwrap());
    first.finish(Outcome::Retryable { error: "unreachable".into() }).await.unwrap();
    is_refused(&shop, "acme", 1).await;
    done(&shop, "acme", 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_no_more_live_keys_than_it_may_and_gets_room_when_some_end() {
    let shop = shop(by_number(3));
    for number in 0..3 {
        done(&shop, "acme", number).await;
        done(&shop, "other", number).await;
    }
    assert_eq!(is_refused(&shop, "acme", 3).await, Duration::from_secs(60));
    assert_eq!(stored(&shop).await, 6);
    assert_eq!(replayed(ask(&shop, "acme", 2).await.unwrap()), "once");
    assert_eq!(shop.store.batches(Call::Count).len(), 2, "counted once for each");

    let ended = shop.memory.read(vec![numbered("acme", 0)]).await.unwrap().items.remove(0).unwrap();
    shop.memory.remove(vec![ended.expected()]).await.unwrap();
    is_refused(&shop, "acme", 3).await;
    tokio::time::advance(WORD).await;
    // The word is asked for again beside the requests: the one that finds it too old may still go by it.
    let again = ask(&shop, "acme", 3).await.unwrap();
    if let Decision::Execute(ticket) = again {
        ticket.finish(completed("once")).await.unwrap();
    } else {
        tokio::time::sleep(Duration::from_millis(1)).await;
        done(&shop, "acme", 3).await;
    }
    is_refused(&shop, "acme", 4).await;
}

#[tokio::test(start_paused = true)]
async fn keys_that_others_made_are_known_with_the_next_word() {
    let shop = shop(by_number(3));
    done(&shop, "acme", 0).await;
    let elsewhere = shop.elsewhere();
    for number in 10..20 {
        done(&elsewhere, "acme", number).await;
    }
    done(&shop, "acme", 1).await;
    tokio::time::advance(WORD).await;
    let _may_go_by_the_old_word = ask(&shop, "acme", 2).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    is_refused(&shop, "acme", 3).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_first_count_nothing_is_executed() {
    let shop = shop(by_number(3));
    shop.store.next(Call::Count, [Fault::Unavailable, Fault::Panic]);
    assert!(matches!(ask(&shop, "acme", 0).await, Err(BeginError::Store(_))));
    assert!(matches!(ask(&shop, "acme", 0).await, Err(BeginError::Store(_))), "a store that panics");
    let gate = Gate::new();
    shop.store.next(Call::Count, [Fault::Held(gate.clone())]);
    let begun = tokio::time::Instant::now();
    assert!(matches!(ask(&shop, "acme", 0).await, Err(BeginError::Store(_))));
    assert_eq!(begun.elapsed(), STORE_TIMEOUT);
    assert_eq!(stored(&shop).await, 0);
    gate.open_for_good();
    done(&shop, "acme", 0).await;
    assert_eq!(shop.store.batches(Call::Count).len(), 3, "a slow count is used when it comes");
}
