//! Storms: many requests at once, on several engines, with real threads.

use crate::support::{Shop, completed, replayed, retryable};
use semel::{Decision, Engine, MemoryStore, Policy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

/// Instances with an engine each on one memory, on the machine's clock.
fn instances(count: usize) -> Vec<Shop> {
    let shop = Shop::new();
    let memory = MemoryStore::new();
    (0..count)
        .map(|_| {
            let store = semel_testing::store::FaultyStore::over(memory.clone());
            Shop { engine: Engine::new(store.clone()), store, memory: memory.clone(), ..shop.clone() }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_requests_on_several_instances_one_executes() {
    let instances = instances(4);
    for _ in 0..20 {
        let barrier = Arc::new(Barrier::new(40));
        let mut requests = JoinSet::new();
        for number in 0..40 {
            let (shop, barrier) = (instances[number % 4].clone(), Arc::clone(&barrier));
            requests.spawn(async move {
                barrier.wait().await;
                shop.decide().await
            });
        }
        let mut owners = Vec::new();
        while let Some(decision) = requests.join_next().await {
            match decision.unwrap() {
                Decision::Execute(ticket) => owners.push(ticket),
                Decision::InProgress { operation_id: Some(_), .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(owners.len(), 1);
        owners.remove(0).finish(semel::Outcome::Released).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_retryable_failure_is_taken_by_one_at_a_time_until_it_succeeds() {
    const FAILURES: u32 = 20;
    let instances = instances(4);
    let (executions, at_work) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut requests = JoinSet::new();
    for number in 0..32 {
        let (shop, executions, at_work) =
            (instances[number % 4].clone(), executions.clone(), at_work.clone());
        requests.spawn(async move {
            loop {
                match shop.decide().await {
                    Decision::Execute(ticket) => {
                        assert_eq!(at_work.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                        let number = executions.fetch_add(1, Ordering::SeqCst) + 1;
                        assert_eq!(ticket.attempt(), number);
                        tokio::task::yield_now().await;
                        at_work.fetch_sub(1, Ordering::SeqCst);
                        let outcome = if number > FAILURES { completed("at last") } else { retryable() };
                        ticket.finish(outcome).await.unwrap();
                    }
                    Decision::InProgress { .. } => tokio::task::yield_now().await,
                    decision => return replayed(decision),
                }
            }
        });
    }
    while let Some(body) = requests.join_next().await {
        assert_eq!(body.unwrap(), "at last");
    }
    assert_eq!(executions.load(Ordering::SeqCst), FAILURES + 1);
    for shop in instances {
        shop.engine.drained().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn expired_keys_that_come_back_all_at_once_execute_once() {
    let shop = Shop::with(Policy {
        retention: std::time::Duration::from_secs(60),
        tombstone: std::time::Duration::ZERO,
        ..Policy::default()
    });
    for round in 0..20 {
        let barrier = Arc::new(Barrier::new(16));
        let mut requests = JoinSet::new();
        for _ in 0..16 {
            let (shop, barrier) = (shop.clone(), Arc::clone(&barrier));
            requests.spawn(async move {
                barrier.wait().await;
                shop.decide().await
            });
        }
        let mut owners = Vec::new();
        while let Some(decision) = requests.join_next().await {
            if let Decision::Execute(ticket) = decision.unwrap() {
                owners.push(ticket);
            }
        }
        assert_eq!(owners.len(), 1, "round {round}");
        owners.remove(0).finish(completed("once")).await.unwrap();
        shop.clock.advance(std::time::Duration::from_secs(60));
    }
}
