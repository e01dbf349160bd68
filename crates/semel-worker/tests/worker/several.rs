//! Three workers on one store, all of whom have seen the same records before any of them writes.

use crate::bank::Bank;
use crate::interposed::Interposed;
use crate::support::{LEASE, Memory, Place, Shop, Sqlite, secs};
use semel::observe::Event;
use semel::{Policy, Settling, State};
use semel_worker::{Forget, ReaperOptions};
use std::sync::Arc;
use tokio::sync::Barrier;

const WORKERS: usize = 3;
/// Fewer than fit into a page: nobody looks beyond it, and nobody waits for the others alone.
const RECORDS: u32 = 7;

/// The same shop in three processes that wait for each other whenever they have seen what is due.
async fn processes(place: &impl Place, shop: &Shop) -> Vec<Shop> {
    let barrier = Arc::new(Barrier::new(WORKERS));
    let mut shops = Vec::new();
    for _ in 0..WORKERS {
        shops.push(shop.elsewhere(Interposed::over(place.open().await).meeting(Arc::clone(&barrier))));
    }
    shops
}

fn counted(shops: &[Shop], event: Event) -> u64 {
    shops.iter().map(|shop| shop.counted.of(event)).sum()
}

async fn each_lease_is_moved_on_once(place: impl Place) {
    let policy = Policy { settling: Settling::Webhook, ..Policy::default() };
    let shop = Shop::at(&place, policy).await;
    let mut ids = Vec::new();
    for number in 0..RECORDS {
        ids.push(shop.abandoned(number).await);
    }
    let shops = processes(&place, &shop).await;
    // Only now: a process judges no lease over before a whole one has passed since its start.
    shop.pass(LEASE);
    let mut watches: Vec<_> = shops.iter().map(Shop::watch).collect();
    let [a, b, c] = &mut watches[..] else { unreachable!() };
    let (a, b, c) = tokio::join!(a.round(), b.round(), c.round());
    assert_eq!(a.unwrap() + b.unwrap() + c.unwrap(), RECORDS as usize);
    assert_eq!(counted(&shops, Event::ZombieKey), u64::from(RECORDS));
    for id in ids {
        assert_eq!(shop.happenings(id).await, ["doubted"]);
    }
}

async fn each_question_is_asked_once(place: impl Place) {
    let bank = Bank::unclear();
    let shop = Shop::asking_at(&place, bank.asking()).await;
    for number in 0..RECORDS {
        shop.doubted(number).await;
    }
    let shops = processes(&place, &shop).await;
    let mut reconcilers: Vec<_> = shops.iter().map(Shop::reconciler).collect();
    // Three questions and the dead letter, each further away than the one before.
    for (turn, wait) in [(1, 10), (2, 15), (3, 30), (4, 60), (4, 60)] {
        shop.pass(secs(wait));
        let [a, b, c] = &mut reconcilers[..] else { unreachable!() };
        let (a, b, c) = tokio::join!(a.turn(), b.turn(), c.turn());
        assert_eq!((a.unwrap(), b.unwrap(), c.unwrap()), (false, false, false));
        for reconciler in &mut reconcilers {
            reconciler.all_answered().await;
        }
        let by_operation = bank.by_operation();
        assert_eq!(by_operation.len(), RECORDS as usize);
        assert!(by_operation.values().all(|asked| *asked == turn), "{by_operation:?}");
    }
    assert_eq!(counted(&shops, Event::ReconcileFailed), u64::from(RECORDS));
}

async fn each_record_is_reaped_once(place: impl Place) {
    let shop = Shop::at(&place, Policy::default()).await;
    let mut ids = Vec::new();
    for number in 0..RECORDS {
        ids.push(shop.completed(number, "paid").await);
    }
    let shops = processes(&place, &shop).await;
    for (wait, reduced, removed) in
        [(shop.policy.retention, RECORDS as usize, 0), (shop.policy.tombstone, 0, RECORDS as usize)]
    {
        shop.pass(wait);
        let reapers: Vec<_> = shops
            .iter()
            .map(|shop| shop.reaper(ReaperOptions { forget: Forget::Hard, ..ReaperOptions::default() }))
            .collect();
        let (a, b, c) = tokio::join!(reapers[0].round(), reapers[1].round(), reapers[2].round());
        let rounds = [a.unwrap(), b.unwrap(), c.unwrap()];
        assert_eq!(rounds.iter().map(|round| round.reduced).sum::<usize>(), reduced);
        assert_eq!(rounds.iter().map(|round| round.removed).sum::<usize>(), removed);
    }
    assert_eq!(counted(&shops, Event::TtlPruned), u64::from(RECORDS));
    for id in ids {
        assert!(shop.record(id).await.is_none());
    }
}

#[tokio::test]
async fn in_memory_each_lease_is_moved_on_once() {
    each_lease_is_moved_on_once(Memory::new()).await;
}

#[tokio::test]
async fn on_sqlite_each_lease_is_moved_on_once() {
    each_lease_is_moved_on_once(Sqlite::new()).await;
}

#[tokio::test]
async fn in_memory_each_question_is_asked_once() {
    each_question_is_asked_once(Memory::new()).await;
}

#[tokio::test]
async fn on_sqlite_each_question_is_asked_once() {
    each_question_is_asked_once(Sqlite::new()).await;
}

#[tokio::test]
async fn in_memory_each_record_is_reaped_once() {
    each_record_is_reaped_once(Memory::new()).await;
}

#[tokio::test]
async fn on_sqlite_each_record_is_reaped_once() {
    each_record_is_reaped_once(Sqlite::new()).await;
}

#[tokio::test]
async fn of_two_who_settle_by_asking_twice_at_once_one_has_the_word() {
    // Two processes whose clocks agree on nothing ask about the same record in two turns, and are answered at the same time.
    let bank = Bank::completing("paid").closed();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    let (mut first, mut second) = (shop.reconciler(), shop.reconciler());
    shop.pass(secs(10));
    first.turn().await.unwrap();
    bank.asked().await;
    shop.pass(secs(15));
    second.turn().await.unwrap();
    bank.asked().await;
    bank.open();
    tokio::join!(first.all_answered(), second.all_answered());
    assert_eq!(bank.questions().len(), 2);
    assert_eq!(shop.state(id).await, State::Completed);
    assert_eq!(shop.happenings(id).await, ["doubted", "settled_completed"]);
    assert_eq!(shop.counted.of(Event::ReconcileResolved), 1);
}
