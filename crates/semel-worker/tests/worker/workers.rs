//! Everything together, as it runs beside a service.

use crate::bank::Bank;
use crate::interposed::Interposed;
use crate::support::{LEASE, Memory, Place, Shop, Sqlite, replayed, secs};
use semel::{Decision, Policy, State, Store as _};
use semel_worker::{Asking, OperationRules, Worker, WorkerOptions};
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
    let asked = shop.store.dues() + shop.store.drops().len() + shop.store.purges().len();
    assert_eq!(shop.store.calls(), asked + 2, "nothing but that, and once a minute what is in doubt");
    // Three kinds, answers, and records that are over; a quarter more or less by chance.
    assert!((400..=700).contains(&asked), "{asked}");
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

/// Payments whose answers were lost, and three workers, of whom one after the other is killed and replaced: each time that some
/// questions more are out and some of them are being answered. `pass` lets time pass, so that what died with a worker is due again.
pub(crate) async fn killed_workers_leave_nothing_behind(
    shop: &Shop,
    bank: &Bank,
    process: impl AsyncFn() -> Shop,
    pass: impl Fn(),
) {
    const KILLS: u32 = 12;
    /// As many as one worker has out at most: whoever replaces a dead one can always ask so many.
    const QUESTIONS: u32 = 4;
    /// Even if every answer settles one, there are enough left for the last of the killed to ask about.
    const PAYMENTS: u32 = (KILLS + 3) * QUESTIONS;
    let mut ids = Vec::new();
    for number in 0..PAYMENTS {
        let doubted = number.is_multiple_of(2);
        ids.push(if doubted { shop.doubted(number).await } else { shop.abandoned(number).await });
    }
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(process().await.hasty_worker());
    }
    for kill in 0..KILLS {
        pass();
        for _ in 0..QUESTIONS {
            bank.asked().await;
        }
        // From none of them to all: some die with the question, some with the answer.
        bank.answer(kill as usize % (QUESTIONS as usize + 1));
        let replaced = kill as usize % 3;
        let dying = workers.remove(replaced);
        dying.abort();
        assert!(dying.await.unwrap_err().is_cancelled());
        workers.insert(replaced, process().await.hasty_worker());
    }
    bank.open();
    let nothing_left = async {
        loop {
            let found = shop.store.find(ids.clone()).await.unwrap();
            if found.items.iter().flatten().all(|record| record.state == State::Completed) {
                break;
            }
            pass();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(secs(60), nothing_left).await.expect("nothing is left behind");
    workers.iter().for_each(JoinHandle::abort);
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(replayed(shop.request(u32::try_from(number).unwrap()).await), (201, "paid".into()));
        assert_eq!(shop.happenings(*id).await, ["doubted", "settled_completed"], "nothing twice");
    }
    assert!(matches!(shop.request(PAYMENTS).await, Decision::Execute(_)));
}

async fn killed_workers_at(place: impl Place) {
    let bank = Bank::completing("paid").closed();
    // A question that is not answered stays out; a worker that dies takes its questions along, and there are enough others.
    let asking = Asking { attempts: 1000, deadline: secs(3600), ..bank.asking() };
    // Hours pass at a time, and nothing is to be forgotten meanwhile.
    let ages = secs(10 * 365 * 86_400);
    let policy =
        Policy { settling: asking.settling(), retention: ages, body_retention: ages, ..Policy::default() };
    let shop = Shop { asking: Some(asking), ..Shop::at(&place, policy).await };
    let process = async || shop.elsewhere(Interposed::over(place.open().await));
    killed_workers_leave_nothing_behind(&shop, &bank, process, || shop.pass(secs(7200))).await;
}

#[tokio::test]
async fn in_memory_killed_workers_leave_nothing_behind() {
    killed_workers_at(Memory::new()).await;
}

#[tokio::test]
async fn on_sqlite_killed_workers_leave_nothing_behind() {
    killed_workers_at(Sqlite::new()).await;
}
