//! Everything together, as it runs beside a service.

use crate::bank::Bank;
use crate::interposed::Interposed;
use crate::support::{LEASE, Memory, Place, Shop, Sqlite, replayed, secs};
use semel::{Decision, Policy, State};
use semel_relay::{Asking, OperationRules, Worker, WorkerOptions};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

fn running(shop: &Shop) -> (oneshot::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = oneshot::channel::<()>();
    (stop, tokio::spawn(shop.worker(WorkerOptions::default()).run(async move { drop(stopped.await) })))
}

#[tokio::test(start_paused = true)]
async fn a_lease_runs_out_is_asked_about_settled_and_forgotten_without_a_request() {
    let bank = Bank::completing("paid");
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.abandoned(1).await;
    let (stop, worker) = running(&shop);
    let pass = async |time| {
        shop.pass(time);
        tokio::time::sleep(secs(3)).await;
    };
    pass(LEASE).await;
    assert_eq!(shop.state(id).await, State::Unknown);
    pass(secs(10)).await;
    assert_eq!(shop.state(id).await, State::Completed);
    pass(shop.policy.retention).await;
    assert_eq!(shop.state(id).await, State::Expired);
    pass(shop.policy.tombstone).await;
    assert!(shop.record(id).await.is_none());
    drop(stop);
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn idle_it_asks_the_store_once_a_second_for_each_thing_that_may_be_due() {
    let shop = Shop::new(Policy::default()).await;
    let (stop, worker) = running(&shop);
    tokio::time::sleep(secs(100)).await;
    let dues = shop.store.dues();
    assert_eq!(shop.store.calls(), dues, "nothing but that");
    // Five kinds, and a quarter more or less by chance.
    assert!((400..=700).contains(&dues), "{dues}");
    drop(stop);
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_it_is_asked_less_and_less_and_then_again() {
    let bank = Bank::completing("paid");
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    let (stop, worker) = running(&shop);
    shop.store.be_away(true);
    shop.pass(secs(10));
    tokio::time::sleep(secs(600)).await;
    let calls = shop.store.calls();
    assert!(calls < 150, "{calls}");
    shop.store.be_away(false);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(shop.state(id).await, State::Completed);
    let before = shop.store.calls();
    tokio::time::sleep(secs(100)).await;
    assert!(shop.store.calls() - before > 300, "and it is back to its pace");
    drop(stop);
    worker.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn it_stops_at_once_but_for_the_questions_that_are_out() {
    let bank = Bank::completing("paid").closed();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(secs(10));
    let (stop, worker) = running(&shop);
    bank.asked().await;
    drop(stop);
    tokio::task::yield_now().await;
    assert!(!worker.is_finished());
    bank.open();
    worker.await.unwrap();
    assert_eq!(shop.state(id).await, State::Completed);

    let (stop, worker) = running(&Shop::new(Policy::default()).await);
    let begun = tokio::time::Instant::now();
    drop(stop);
    worker.await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_interval_of_nothing_makes_no_busy_loop() {
    let shop = Shop::new(Policy::default()).await;
    let none = Duration::ZERO;
    let options = WorkerOptions {
        watch_every: none,
        reconcile_every: none,
        reap_every: none,
        ..WorkerOptions::default()
    };
    let running = tokio::spawn(Worker::new(shop.engine.clone(), options).run(std::future::pending()));
    tokio::time::sleep(secs(1)).await;
    running.abort();
    assert!(shop.store.calls() < 1000, "{}", shop.store.calls());
}

#[tokio::test(start_paused = true)]
async fn operations_can_be_found_by_a_rule_for_the_rest() {
    let shop = Shop::new(Policy::default()).await;
    let id = shop.abandoned(1).await;
    shop.pass(LEASE);
    let nobody = Worker::new(shop.engine.clone(), WorkerOptions::default());
    let running = tokio::spawn(nobody.run(std::future::pending()));
    tokio::time::sleep(secs(5)).await;
    running.abort();
    assert_eq!(shop.state(id).await, State::InProgress, "it knows of no operation");
    let everybody = Worker::new(shop.engine.clone(), WorkerOptions::default())
        .other_operations(|_| Some(OperationRules::new(Policy::default())));
    let running = tokio::spawn(everybody.run(std::future::pending()));
    tokio::time::sleep(secs(5)).await;
    running.abort();
    assert_eq!(shop.state(id).await, State::Unknown);
}

/// A hundred payments whose answers were lost, three workers, one after the other killed and replaced.
async fn killed_workers_leave_nothing_behind(place: impl Place) {
    const PAYMENTS: u32 = 100;
    let bank = Bank::completing("paid");
    // A worker that dies takes its questions along: there are enough others.
    let shop = Shop::asking_at(&place, Asking { attempts: 100, ..bank.asking() }).await;
    let mut ids = Vec::new();
    for number in 0..PAYMENTS {
        ids.push(if number % 2 == 0 { shop.doubted(number).await } else { shop.abandoned(number).await });
    }
    let process = async || shop.elsewhere(Interposed::over(place.open().await));
    let mut workers = [process().await, process().await, process().await].map(|shop| shop.hasty_worker());
    let mut left = PAYMENTS;
    // Time passes by what the workers do, and one of them dies each time.
    for round in 0..200 {
        shop.pass(secs(5));
        tokio::time::sleep(Duration::from_millis(20)).await;
        workers[round % 3].abort();
        workers[round % 3] = process().await.hasty_worker();
        left = 0;
        for id in &ids {
            left += u32::from(shop.state(*id).await != State::Completed);
        }
        if left == 0 {
            break;
        }
    }
    workers.iter().for_each(JoinHandle::abort);
    assert_eq!(left, 0, "nothing is left behind");
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(replayed(shop.request(u32::try_from(number).unwrap()).await), (201, "paid".into()));
        assert_eq!(shop.happenings(*id).await, ["doubted", "settled_completed"], "nothing twice");
    }
    assert!(matches!(shop.request(PAYMENTS).await, Decision::Execute(_)));
}

#[tokio::test(start_paused = true)]
async fn in_memory_killed_workers_leave_nothing_behind() {
    killed_workers_leave_nothing_behind(Memory::new()).await;
}

#[tokio::test]
async fn on_sqlite_killed_workers_leave_nothing_behind() {
    killed_workers_leave_nothing_behind(Sqlite::new()).await;
}
