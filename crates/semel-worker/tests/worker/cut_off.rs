//! A worker that is cut off at any of its calls to the store, before or after the store did what it was asked for. Another one goes
//! on: nothing is settled twice, and nothing is left behind.

use crate::bank::Bank;
use crate::interposed::{Cut, Interposed};
use crate::support::{LEASE, Memory, Place, Shop, answer, replayed, secs};
use semel::observe::Event;
use semel::{Decision, Outcome};
use semel_worker::WorkerOptions;
use tokio::task::JoinHandle;

/// Starts a worker that works until it is killed.
fn running(shop: &Shop) -> JoinHandle<()> {
    tokio::spawn(shop.worker(WorkerOptions::default()).run(std::future::pending()))
}

/// What every kind of work has something to do with: a lease that ran out, an outcome to be asked about, and one that has expired.
async fn prepared(place: &Memory, bank: &Bank) -> Shop {
    let shop = Shop::asking_at(place, bank.asking()).await;
    shop.completed(3, "old").await;
    shop.pass(shop.policy.retention);
    shop.abandoned(1).await;
    shop.doubted(2).await;
    shop.pass(LEASE);
    shop
}

/// Works until there is nothing to do.
async fn finish(shop: &Shop) {
    for _ in 0..10 {
        shop.watch().round().await.unwrap();
        let mut reconciler = shop.reconciler();
        reconciler.turn().await.unwrap();
        reconciler.all_answered().await;
        shop.reaper(Default::default()).round().await.unwrap();
        shop.pass(secs(60));
    }
}

#[tokio::test(start_paused = true)]
async fn wherever_a_worker_is_cut_off_another_one_goes_on() {
    let mut cuts = 0;
    for cut in [Cut::Before, Cut::After] {
        for call in 0.. {
            let (place, bank) = (Memory::new(), Bank::completing("paid"));
            let shop = prepared(&place, &bank).await;
            let way = Interposed::over(place.open().await).cutting(call, cut);
            let doomed = shop.elsewhere(way.clone());
            let running = running(&doomed);
            // It works until both are settled, or until it is cut off.
            let settled = async {
                loop {
                    tokio::time::sleep(secs(1)).await;
                    shop.pass(secs(10));
                    let told = (shop.request(1).await, shop.request(2).await);
                    if matches!(told, (Decision::Replay(_), Decision::Replay(_))) {
                        break;
                    }
                }
            };
            let was_cut = tokio::select! {
                () = way.reached() => true,
                () = settled => false,
            };
            running.abort();
            running.await.unwrap_err();
            if !was_cut {
                assert!(call > 8, "there was more to do than that");
                break;
            }
            cuts += 1;
            finish(&shop).await;
            let place = format!("{cut:?} call {call}");
            for number in [1, 2] {
                assert_eq!(replayed(shop.request(number).await), (201, "paid".into()), "{place}");
            }
            assert!(matches!(shop.request(3).await, Decision::Expired { .. }), "{place}");
            for id in bank.by_operation().into_keys() {
                let settled =
                    shop.happenings(id).await.iter().filter(|what| **what == "settled_completed").count();
                assert_eq!(settled, 1, "{place}");
            }
            // An answer that was lost on the way is asked for again; nothing else is.
            assert!(
                bank.by_operation().values().all(|asked| *asked <= 2),
                "{place}: {:?}",
                bank.by_operation()
            );
        }
    }
    assert!(cuts > 16, "{cuts}");
}

#[tokio::test(start_paused = true)]
async fn questions_that_were_out_when_their_worker_died_are_asked_again() {
    let bank = Bank::completing("paid").closed();
    let shop = Shop::asking(bank.asking()).await;
    let id = shop.doubted(1).await;
    shop.pass(secs(10));
    let mut reconciler = shop.reconciler();
    reconciler.turn().await.unwrap();
    bank.asked().await;
    drop(reconciler);
    bank.open();
    let mut next = shop.reconciler();
    next.turn().await.unwrap();
    assert_eq!(next.questions_out(), 0, "nobody can know that the first one is dead");
    shop.pass(secs(15));
    next.turn().await.unwrap();
    next.all_answered().await;
    assert_eq!(replayed(shop.request(1).await), (201, "paid".into()));
    assert_eq!(shop.happenings(id).await, ["doubted", "settled_completed"]);
    assert_eq!((bank.questions().len(), shop.counted.of(Event::ReconcileResolved)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_late_owner_and_three_dying_workers_leave_one_outcome() {
    for cut in 0..12 {
        let (place, bank) = (Memory::new(), Bank::completing("the bank's"));
        let shop = Shop::asking_at(&place, bank.asking()).await;
        let ticket = shop.execute(1).await;
        let id = ticket.operation_id();
        shop.pass(LEASE);
        shop.watch().round().await.unwrap();
        shop.pass(secs(10));
        let way = Interposed::over(place.open().await).cutting(cut, Cut::After);
        let running = running(&shop.elsewhere(way.clone()));
        tokio::select! {
            () = way.reached() => {}
            () = tokio::time::sleep(secs(5)) => {}
        }
        running.abort();
        let late = Outcome::Completed { response: Some(answer(201, "the owner's")), resource: None };
        ticket.finish(late).await.unwrap();
        let (status, first) = replayed(shop.request(1).await);
        assert_eq!(status, 201);
        finish(&shop).await;
        assert_eq!(replayed(shop.request(1).await).1, first, "the outcome does not change any more");
        let ends = shop.happenings(id).await;
        let ends = ends.iter().filter(|what| ["settled_completed", "finished_late"].contains(what)).count();
        assert_eq!(ends, 1, "cut at {cut}");
    }
}
