//! Forgetting on time, and not before.

use crate::support::{LEASE, Place as _, Shop, Sqlite, replayed, secs};
use semel::observe::Event;
use semel::{Body, Decision, Expired, Filter, Policy, State, Store as _};
use semel_worker::{Forget, Reaped, ReaperOptions};
use std::time::Duration;

fn soft() -> ReaperOptions {
    ReaperOptions { forget: Forget::Soft, ..ReaperOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn windows_end_to_the_second_whether_or_not_the_reaper_came_by() {
    for reaping in [true, false] {
        let policy = Policy { body_retention: secs(60), ..Policy::default() };
        let shop = Shop::new(policy).await;
        let id = shop.completed(1, "paid").await;
        let reaper = shop.reaper(ReaperOptions::default());
        let round = async || {
            if reaping { reaper.round().await.unwrap() } else { Reaped::default() }
        };
        shop.pass(secs(59));
        assert_eq!(round().await, Reaped::default());
        assert_eq!(replayed(shop.request(1).await), (201, "paid".into()));

        shop.pass(secs(1));
        assert_eq!(round().await.reduced, usize::from(reaping));
        assert!(matches!(shop.request(1).await, Decision::NotStored(_)));
        let body = shop.record(id).await.unwrap().response.unwrap().body;
        assert_eq!(body == Body::Dropped, reaping);

        shop.pass(shop.policy.retention - secs(61));
        round().await;
        assert!(matches!(shop.request(1).await, Decision::NotStored(_)));
        assert_eq!(shop.state(id).await, State::Completed);
        shop.pass(secs(1));
        assert_eq!(round().await, Reaped::default(), "that a window ends takes no writing");
        assert!(matches!(shop.request(1).await, Decision::Expired { .. }));
        assert_eq!(shop.state(id).await, State::Expired);

        shop.pass(shop.policy.tombstone - secs(1));
        round().await;
        assert!(matches!(shop.request(1).await, Decision::Expired { .. }));
        shop.pass(secs(1));
        assert_eq!(round().await.removed, usize::from(reaping));
        assert_eq!(shop.record(id).await.is_none(), reaping);
        assert_eq!(shop.counted.of(Event::TtlPruned), u64::from(reaping));
        assert_eq!(shop.counted.of(Event::ExpiredRetry), 2);
        let ticket = shop.execute(1).await;
        assert_ne!(ticket.operation_id(), id, "new work");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_may_be_new_work_at_once() {
    for reaped in [true, false] {
        let shop = Shop::new(Policy { expired: Expired::New, ..Policy::default() }).await;
        let id = shop.completed(1, "paid").await;
        shop.pass(shop.policy.retention);
        if reaped {
            shop.reaper(ReaperOptions::default()).round().await.unwrap();
        }
        assert_ne!(shop.execute(1).await.operation_id(), id);
        assert_eq!(shop.counted.of(Event::ExpiredRetry), 1);
    }
}

/// Else windows that end as fast as they are dealt with would keep the reaper from everything else.
#[tokio::test(start_paused = true)]
async fn what_ends_during_a_round_is_for_the_next_one() {
    let shop = Shop::new(Policy::default()).await;
    for number in 1..=9 {
        shop.completed(number, "paid").await;
        shop.pass(secs(1));
    }
    // The first of them is over.
    shop.pass(shop.policy.retention - secs(9));
    let reaper = shop.reaper(ReaperOptions { batch: 1, ..ReaperOptions::default() });
    let time_goes_on = async {
        for _ in 0..100 {
            shop.pass(secs(1));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (reaped, ()) = tokio::join!(reaper.round(), time_goes_on);
    // The second batch, which took no time before it and is larger, tells that the first was all that was over in the beginning.
    assert_eq!(reaped.unwrap().reduced, 1 + 4);
    assert_eq!(shop.reaper(ReaperOptions::default()).round().await.unwrap().reduced, 4);
}

#[tokio::test(start_paused = true)]
async fn what_is_unfinished_is_never_touched_however_old() {
    let shop = Shop::new(Policy::default()).await;
    let (dead_letter, abandoned) = (shop.doubted(1).await, shop.abandoned(2).await);
    let before = (shop.record(dead_letter).await.unwrap(), shop.record(abandoned).await.unwrap());
    shop.pass(secs(10 * 365 * 86_400));
    for options in [ReaperOptions::default(), soft()] {
        assert_eq!(shop.reaper(options).round().await.unwrap(), Reaped::default());
    }
    assert!(before.0.dead_letter);
    assert_eq!((shop.record(dead_letter).await.unwrap(), shop.record(abandoned).await.unwrap()), before);
}

#[tokio::test(start_paused = true)]
async fn softly_a_trace_of_everything_stays_and_clients_notice_nothing() {
    for tombstone in [secs(7 * 86_400), Duration::ZERO] {
        let shop = Shop::new(Policy { tombstone, ..Policy::default() }).await;
        let id = shop.completed(1, "paid").await;
        // The reaper comes by only when everything is over.
        shop.pass(shop.policy.retention + tombstone + secs(1));
        let reaper = shop.reaper(soft());
        assert_eq!(reaper.round().await.unwrap(), Reaped { reduced: 1, removed: 0 });
        assert_eq!(reaper.round().await.unwrap(), Reaped::default());
        let kept = shop.record(id).await.unwrap().response.unwrap();
        assert_eq!((shop.state(id).await, kept.headers, kept.body), (State::Expired, vec![], Body::Dropped));
        shop.pass(secs(365 * 86_400));
        assert_eq!(reaper.round().await.unwrap(), Reaped::default());
        assert_eq!(shop.store.looked_at(), 0, "what stays is not read every time");
        assert!(shop.record(id).await.is_some());
        assert_ne!(shop.execute(1).await.operation_id(), id, "the key is new work, as it would be otherwise");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_for_ever_stays_for_ever() {
    let shop = Shop::new(Policy { tombstone: Duration::MAX, ..Policy::default() }).await;
    let id = shop.completed(1, "paid").await;
    shop.pass(shop.policy.retention);
    let reaper = shop.reaper(ReaperOptions::default());
    assert_eq!(reaper.round().await.unwrap(), Reaped { reduced: 1, removed: 0 });
    shop.pass(secs(100 * 365 * 86_400));
    assert_eq!(reaper.round().await.unwrap(), Reaped::default());
    assert_eq!(shop.state(id).await, State::Expired);
    assert!(matches!(shop.request(1).await, Decision::Expired { .. }));
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_end_is_forgotten() {
    let shop = Shop::new(Policy::default()).await;
    shop.completed(1, "paid").await;
    for (number, outcome) in [
        (2, semel::Outcome::Failed { response: None, resource: None }),
        (3, semel::Outcome::Retryable { error: "unreachable".into() }),
    ] {
        shop.execute(number).await.finish(outcome).await.unwrap();
    }
    let reaper = shop.reaper(ReaperOptions::default());
    shop.pass(shop.policy.retention);
    // One of them has an answer.
    assert_eq!(reaper.round().await.unwrap(), Reaped { reduced: 1, removed: 0 });
    shop.pass(shop.policy.tombstone);
    assert_eq!(reaper.round().await.unwrap(), Reaped { reduced: 0, removed: 3 });
    let left = shop.store.list(Filter::default(), None, 10).await.unwrap();
    assert!(left.records.is_empty());
}

/// What the record itself holds goes at the end of its window too, by a tombstone.
#[tokio::test(start_paused = true)]
async fn a_checkpoint_goes_with_the_window() {
    for options in [ReaperOptions::default(), soft()] {
        let shop = Shop::new(Policy::default()).await;
        let mut ticket = shop.execute(1).await;
        let id = ticket.operation_id();
        ticket.advance("charged", Some("checkpoint".into())).await.unwrap();
        ticket.finish(semel::Outcome::Completed { response: None, resource: None }).await.unwrap();
        assert!(shop.record(id).await.unwrap().checkpoint.is_some());
        let reaper = shop.reaper(options);
        shop.pass(shop.policy.retention - secs(1));
        assert_eq!(reaper.round().await.unwrap(), Reaped::default());
        shop.pass(secs(1));
        assert_eq!(reaper.round().await.unwrap(), Reaped { reduced: 1, removed: 0 });
        let tombstone = shop.record(id).await.unwrap();
        assert_eq!((tombstone.state, tombstone.checkpoint), (State::Expired, None));
        assert!(matches!(shop.request(1).await, Decision::Expired { .. }));
    }
}

/// By name alone, and by a foreign key that lets go.
#[tokio::test]
async fn domain_rows_that_refer_to_a_record_survive_it() {
    let place = Sqlite::new();
    let (shop, domain) = (Shop::at(&place, Policy::default()).await, place.store().await);
    let id = shop.completed(1, "paid").await;
    let bytes = id.as_bytes().to_vec();
    domain
        .transaction(move |tx| {
            tx.execute_batch(
                "CREATE TABLE payments (id TEXT PRIMARY KEY, operation_id BLOB NOT NULL,
                 record BLOB REFERENCES semel_records (operation_id) ON DELETE SET NULL) STRICT",
            )?;
            tx.execute("INSERT INTO payments VALUES ('pay_1', ?1, ?1)", [bytes])
        })
        .await
        .unwrap();
    let reaper = shop.reaper(ReaperOptions::default());
    shop.pass(shop.policy.retention);
    assert_eq!(reaper.round().await.unwrap().reduced, 1);
    shop.pass(shop.policy.tombstone);
    assert_eq!(reaper.round().await.unwrap().removed, 1);
    assert!(shop.record(id).await.is_none());
    let kept = domain.transaction(|tx| {
        tx.query_row("SELECT id, operation_id, record FROM payments", [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, Option<Vec<u8>>>(2)?))
        })
    });
    assert_eq!(kept.await.unwrap(), ("pay_1".to_owned(), id.as_bytes().to_vec(), None));
}

/// Ten thousand records go in small batches while requests come in, and every one of these gets through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_go_in_small_batches_while_writes_go_on() {
    const OLD: u32 = 10_000;
    let place = Sqlite::new();
    let shop = Shop::at(&place, Policy { lease: LEASE * 1000, ..Policy::default() }).await;
    let store = place.open().await;
    for thousand in 0..10 {
        let drafts = (0..OLD / 10).map(|number| {
            let key = crate::support::key(thousand * OLD / 10 + number);
            let mut draft = semel_conformance::samples::in_state(State::Completed, key);
            draft.times.expires = Some(semel::When::In(secs(60)));
            draft.times.purge = Some(semel::When::In(secs(120)));
            draft
        });
        store.create(drafts.collect()).await.unwrap();
    }
    shop.pass(secs(60));
    let reaping = shop.elsewhere(crate::interposed::Interposed::over(place.open().await));
    let options = ReaperOptions { batch: 256, pause: Duration::from_millis(1), ..ReaperOptions::default() };
    let reaper = tokio::spawn({
        let reaper = reaping.reaper(options);
        async move {
            let first = reaper.round().await.unwrap();
            reaping.pass(secs(60));
            (first, reaper.round().await.unwrap(), reaping)
        }
    });
    let mut written = 0;
    while !reaper.is_finished() {
        shop.completed(OLD + written, "new").await;
        written += 1;
    }
    let (first, second, reaping) = reaper.await.unwrap();
    assert_eq!((first.reduced, first.removed), (OLD as usize, 0));
    assert_eq!((second.reduced, second.removed), (0, OLD as usize));
    for batches in [reaping.store.drops(), reaping.store.purges()] {
        assert!(batches.len() > 10 && batches.iter().all(|size| *size <= 4 * 256), "{batches:?}");
    }
    assert!(written > 0);
    for number in 0..written {
        assert_eq!(replayed(shop.request(OLD + number).await), (201, "new".into()), "untouched");
    }
    let left =
        shop.store.list(Filter::default(), None, usize::try_from(written).unwrap() + 10).await.unwrap();
    assert_eq!(left.records.len(), written as usize);
}
