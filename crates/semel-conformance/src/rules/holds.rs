//! Clock holds: a clock that jumps ahead is not believed. Stamp late, judge early.

use crate::samples::{LONG, SHORT, WINDOWS, complete, complete_within, key, request};
use crate::{Bench, Checked, Client};
use semel::clock::ClockRequest;
use semel::transition::{Arrived, Windows};
use semel::{DueKind, Filter, Now, State, StoreError};
use std::time::Duration;

/// Beyond every window of the samples, and beyond every step that is followed.
const JUMP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Key 1, completed.
async fn completed(client: &Client) {
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, complete("done")).await.expect("the owner completes it");
}

async fn is_replayed(client: &Client) {
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Replay);
}

fn is_held(now: Now) {
    assert!(now.is_held() && now.latest >= now.earliest.plus(JUMP - LONG), "{now:?}");
}

pub async fn a_jump_ahead_gives_two_times_and_the_earliest_goes_on(bench: Bench) -> Checked {
    let client = bench.client();
    let before = client.moment().await;
    assert_eq!(before.earliest, before.latest, "a trusted clock has one time");
    bench.jump(JUMP)?;
    bench.pass(SHORT).await;
    let after = client.moment().await;
    assert_eq!(after.earliest, before.earliest.plus(SHORT));
    is_held(after);
    let report = client.clock(ClockRequest::Look).await;
    assert_eq!((report.earliest, report.latest), (after.earliest, after.latest));
    Ok(())
}

pub async fn what_is_over_by_a_jump_alone_is_replayed_and_nothing_is_purged_or_dropped(
    bench: Bench,
) -> Checked {
    let client = bench.client();
    completed(&client).await;
    bench.jump(JUMP)?;
    assert_eq!(client.purge(10).await, []);
    assert_eq!(client.drop_answers(10).await, []);
    for kind in [DueKind::Window, DueKind::Purge] {
        assert_eq!(client.due(kind).await.items, []);
    }
    is_replayed(&client).await;
    let expired = Filter { state: Some(State::Expired), ..Filter::default() };
    assert_eq!(client.list(&expired, 10).await, []);
    // What is over by the earliest time as well is told so, and stays.
    bench.pass(LONG * 3).await;
    assert_eq!((client.purge(10).await, client.drop_answers(10).await), (vec![], vec![]));
    assert!(client.read(&key(1)).await.is_some());
    Ok(())
}

pub async fn during_a_hold_windows_are_stamped_late_and_leases_early(bench: Bench) -> Checked {
    let client = bench.client();
    bench.jump(JUMP)?;
    let now = client.moment().await;
    is_held(now);
    let ticket = client.arrive(&request(1)).await.executes();
    let record = client.record(&key(1)).await;
    assert_eq!(record.times.created, now.earliest);
    assert_eq!(record.times.lease, now.earliest.plus(client.policy.lease));
    let windows = Windows { body_retention: SHORT, ..WINDOWS };
    client.act(&ticket, complete_within("done", windows)).await.expect("the owner completes it");
    let times = client.record(&key(1)).await.times;
    assert_eq!(times.completed, Some(now.earliest));
    assert_eq!(times.body_expires, Some(now.latest.plus(SHORT)));
    assert_eq!(times.expires, Some(now.latest.plus(WINDOWS.retention)));
    assert_eq!(times.purge, Some(now.latest.plus(WINDOWS.retention + WINDOWS.tombstone)));
    // Whichever time is the right one, the window is no shorter than it should be.
    client.clock(ClockRequest::Accept).await;
    is_replayed_or_over(&client, false).await;
    bench.pass(LONG).await;
    is_replayed_or_over(&client, true).await;
    Ok(())
}

/// The body goes first, so that a replay says that it is not stored.
async fn is_replayed_or_over(client: &Client, is_over: bool) {
    let told = client.arrive(&request(1)).await.told().0;
    let expected: &[Arrived] =
        if is_over { &[Arrived::Expired] } else { &[Arrived::Replay, Arrived::NotStored] };
    assert!(expected.contains(&told), "{told:?}");
}

pub async fn during_a_hold_quotas_are_counted_by_the_latest_time(bench: Bench) -> Checked {
    let client = bench.client();
    completed(&client).await;
    let tenant = key(1).tenant.to_string();
    let count = || async { client.store.count_live(tenant.clone(), 10).await.expect("the store counts") };
    assert_eq!(count().await, 1);
    bench.jump(JUMP)?;
    assert_eq!(count().await, 0, "its window is over by what the clock claims");
    Ok(())
}

pub async fn a_clock_that_comes_back_ends_the_hold(bench: Bench) -> Checked {
    let client = bench.client();
    completed(&client).await;
    let before = client.now().await;
    bench.jump(JUMP)?;
    is_held(client.moment().await);
    bench.pass(SHORT).await;
    bench.come_back(JUMP)?;
    let now = client.moment().await;
    assert_eq!((now.earliest, now.latest), (before.plus(SHORT), before.plus(SHORT)));
    is_replayed(&client).await;
    // And time ends what it always did.
    bench.pass(LONG * 3).await;
    assert_eq!(client.purge(10).await.len(), 1);
    Ok(())
}

pub async fn the_latest_time_does_not_go_back_with_the_clock_during_a_hold(bench: Bench) -> Checked {
    completed(&bench.client()).await;
    // The store was stopped for a month, and the clock is right.
    bench.jump(JUMP)?;
    let mut bench = bench.reopened().await?;
    let latest = bench.client().moment().await.latest;
    // It is set back, to less than it said and to less than the mark.
    for (back, keys) in [(JUMP / 2, [2, 3]), (JUMP + LONG * 3, [4, 5])] {
        bench.set_back(back)?;
        for index in keys {
            let client = bench.client();
            let now = client.moment().await;
            assert!(now.is_held() && now.latest >= latest, "{now:?}, set back by {back:?}");
            let ticket = client.arrive(&request(index)).await.executes();
            client.act(&ticket, complete("done")).await.expect("the owner completes it");
            let times = client.record(&key(index)).await.times;
            assert!(times.expires >= Some(latest.plus(WINDOWS.retention)), "{times:?}, set back by {back:?}");
            drop(client);
            // Not behind the mark: whether such a start is served depends on what was written of the clock by then.
            if index == keys[0] && back < JUMP {
                bench = bench.reopened().await?;
            }
        }
        bench.jump(back)?;
    }
    // The clock is right again, and an operator says so.
    let client = bench.client();
    client.clock(ClockRequest::Accept).await;
    assert!(!client.moment().await.is_held());
    for index in 2..=5 {
        assert_eq!(client.arrive(&request(index)).await.told().0, Arrived::Replay);
    }
    Ok(())
}

pub async fn an_accepted_hold_ends_windows_and_no_lease_by_the_jump(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT * 4);
    completed(&client).await;
    let owner = client.arrive(&request(2)).await.executes();
    bench.jump(JUMP)?;
    let held = client.moment().await;
    let report = client.clock(ClockRequest::Accept).await;
    assert!(!report.is_held() && report.earliest >= held.latest, "{report:?}");
    let now = client.moment().await;
    assert!(!now.is_held() && now.earliest >= held.latest, "{now:?}");
    let in_progress = |told: Arrived| assert!(matches!(told, Arrived::InProgress { .. }), "{told:?}");
    in_progress(client.arrive(&request(2)).await.told().0);
    client.watch(&key(2)).await.expect_err("the lease watch goes by the same");
    bench.pass(SHORT).await;
    in_progress(client.arrive(&request(2)).await.told().0);
    // The owner was at work all the time.
    client.act(&owner, complete("done")).await.expect("the owner completes it");
    // Windows did end: the clock was right.
    assert_eq!(client.purge(10).await.len(), 1);
    let silent = client.arrive(&request(3)).await.executes();
    bench.pass(SHORT * 8).await;
    assert_eq!(client.arrive(&request(3)).await.told().0, Arrived::Unknown, "{silent:?}");
    Ok(())
}

pub async fn every_instance_sees_the_hold(bench: Bench) -> Checked {
    let (one, two) = (bench.client(), bench.another().await?);
    completed(&one).await;
    two.moment().await;
    bench.jump(JUMP)?;
    for client in [&one, &two] {
        is_held(client.moment().await);
        assert_eq!(client.purge(10).await, []);
        is_replayed(client).await;
    }
    one.clock(ClockRequest::Accept).await;
    for client in [&one, &two] {
        assert!(!client.moment().await.is_held());
    }
    assert_eq!(two.purge(10).await.len(), 1);
    Ok(())
}

pub async fn a_start_with_a_wrong_clock_forgets_nothing(bench: Bench) -> Checked {
    completed(&bench.client()).await;
    let before = bench.client().now().await;
    bench.jump(JUMP)?;
    let bench = bench.reopened().await?;
    is_held(bench.client().moment().await);
    assert_eq!((bench.client().purge(10).await, bench.client().drop_answers(10).await), (vec![], vec![]));
    is_replayed(&bench.client()).await;
    bench.pass(SHORT).await;
    bench.come_back(JUMP)?;
    let bench = bench.reopened().await?;
    let now = bench.client().moment().await;
    assert!(
        !now.is_held() && now.latest <= before.plus(LONG),
        "the store's time is the right one again: {now:?}"
    );
    is_replayed(&bench.client()).await;
    Ok(())
}

pub async fn a_start_with_a_clock_far_behind_the_mark_serves_nothing_until_it_is_right(
    bench: Bench,
) -> Checked {
    completed(&bench.client()).await;
    let before = bench.client().now().await;
    bench.set_back(JUMP)?;
    let bench = bench.reopened().await?;
    serves_nothing(&bench).await;
    bench.jump(JUMP)?;
    assert!(!bench.client().moment().await.is_held());
    is_replayed(&bench.client()).await;
    // Or until an operator says that it is right: time goes on from the mark, and nobody has to say it again.
    bench.set_back(JUMP)?;
    let bench = bench.reopened().await?;
    serves_nothing(&bench).await;
    bench.client().clock(ClockRequest::Accept).await;
    is_replayed(&bench.client()).await;
    bench.pass(SHORT).await;
    let bench = bench.reopened().await?;
    is_replayed(&bench.client()).await;
    let now = bench.client().moment().await;
    assert_eq!((now.earliest, now.is_held()), (before.plus(SHORT), false), "{now:?}");
    Ok(())
}

async fn serves_nothing(bench: &Bench) {
    let store = bench.store();
    let read = store.read(vec![key(1)]).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    let created = store.create(vec![crate::samples::reserved(key(2))]).await;
    assert!(matches!(created, Err(StoreError::Unavailable(_))), "{created:?}");
    let report = bench.client().clock(ClockRequest::Look).await;
    assert!(report.wrong.is_some_and(|wrong| wrong.contains("semel clock accept")));
}

pub async fn a_hold_outlives_a_restart(bench: Bench) -> Checked {
    completed(&bench.client()).await;
    let before = bench.client().now().await;
    bench.jump(JUMP)?;
    let mut bench = bench;
    for _ in 0..5 {
        bench = bench.reopened().await?;
        is_held(bench.client().moment().await);
        // A write, which leaves a mark.
        let ticket = bench.client().arrive(&request(2)).await.executes();
        bench.client().act(&ticket, crate::samples::release()).await.expect("the owner gives it back");
        bench.pass(SHORT).await;
    }
    let now = bench.client().moment().await;
    assert!(now.earliest <= before.plus(SHORT * 5), "no more than the time that has passed: {now:?}");
    is_replayed(&bench.client()).await;
    Ok(())
}

pub async fn a_store_that_was_stopped_for_weeks_serves_at_once(bench: Bench) -> Checked {
    completed(&bench.client()).await;
    bench.jump(JUMP)?;
    let bench = bench.reopened().await?;
    // A right jump looks like a wrong clock: expired answers are still replayed, new keys are served, and an operator ends the hold.
    is_replayed(&bench.client()).await;
    let ticket = bench.client().arrive(&request(2)).await.executes();
    bench.client().act(&ticket, complete("new")).await.expect("the owner completes it");
    bench.client().clock(ClockRequest::Accept).await;
    assert_eq!(bench.client().purge(10).await.len(), 1, "the one from before");
    assert_eq!(bench.client().arrive(&request(2)).await.told().0, Arrived::Replay);
    Ok(())
}

pub async fn after_a_start_no_lease_is_over_before_a_whole_one_has_passed(bench: Bench) -> Checked {
    let with = |bench: &Bench| bench.client().with_policy(|policy| policy.lease = SHORT * 80);
    let ticket = with(&bench).arrive(&request(1)).await.executes();
    bench.pass(SHORT * 81).await;
    let bench = bench.reopened().await?;
    let told = with(&bench).arrive(&request(1)).await.told().0;
    assert!(matches!(told, Arrived::InProgress { .. }), "{told:?}");
    with(&bench).watch(&key(1)).await.expect_err("the lease watch goes by the same");
    bench.pass(SHORT * 80).await;
    assert_eq!(with(&bench).arrive(&request(1)).await.told().0, Arrived::Unknown, "{ticket:?}");
    Ok(())
}
