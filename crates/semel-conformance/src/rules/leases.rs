//! How long an owner is believed to be at work, and what follows.

use crate::samples::{LONG, SHORT, advance, complete, key, request, reserved_for};
use crate::{Bench, Checked};
use semel::transition::{Act, Arrived, Refusal};
use semel::{DueKind, Origin, Settling, Stale, State};
use std::time::Duration;

pub async fn a_lease_counts_from_the_stores_now(bench: Bench) -> Checked {
    let client = bench.client();
    let draft = reserved_for(key(1), LONG);
    let (now, _) = client.create(draft).await;
    assert_eq!(client.record(&key(1)).await.times.lease, now.plus(LONG));
    Ok(())
}

pub async fn while_the_lease_runs_a_duplicate_is_told_in_progress_and_how_long(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = LONG);
    client.arrive(&request(1)).await.executes();
    let (told, record) = client.arrive(&request(1)).await.told();
    let Arrived::InProgress { lease_left } = told else { panic!("told {told:?}") };
    assert!(lease_left <= LONG && lease_left > LONG / 2);
    assert_eq!(record.state, State::InProgress);
    Ok(())
}

pub async fn a_heartbeat_moves_the_end_of_the_lease_and_nothing_else(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = client.arrive(&request(1)).await.executes();
    let before = client.record(&ticket.key).await;
    client.act(&ticket, Act::Extend { lease: LONG }).await.expect("a heartbeat");
    let after = client.record(&ticket.key).await;
    assert!(after.times.lease > before.times.lease);
    assert_eq!(after.version, before.version + 1);
    let mut expected = before.clone();
    (expected.version, expected.times.lease) = (after.version, after.times.lease);
    assert_eq!(after, expected);
    // Past the first lease, within the second.
    bench.reach(before.times.lease).await;
    assert!(matches!(client.arrive(&request(1)).await.told().0, Arrived::InProgress { .. }));
    assert!(client.due(DueKind::Lease).await.items.is_empty());
    Ok(())
}

pub async fn a_request_that_finds_the_lease_over_is_told_unknown(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = client.arrive(&request(1)).await.executes();
    bench.reach(client.record(&ticket.key).await.times.lease).await;
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Unknown);
    let record = client.record(&ticket.key).await;
    assert_eq!((record.state, record.attempt), (State::Unknown, 1));
    assert!(ticket.claim.holds(&record), "the owner stays: its late word still counts");
    Ok(())
}

pub async fn the_lease_watch_finds_an_owner_that_gave_no_sign_of_life(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.lease = SHORT;
        policy.settling = Settling::Webhook;
    });
    let ticket = client.arrive(&request(1)).await.executes();
    bench.reach(client.record(&ticket.key).await.times.lease).await;
    let due = client.due(DueKind::Lease).await.items;
    assert_eq!(due, [client.record(&ticket.key).await]);
    client.watch(&ticket.key).await.expect("its time has come");
    assert_eq!(client.record(&ticket.key).await.state, State::Unknown);
    assert!(client.due(DueKind::Lease).await.items.is_empty(), "what was seen to is due no more");
    Ok(())
}

pub async fn the_lease_watch_leaves_a_running_lease_alone(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = LONG);
    let ticket = client.arrive(&request(1)).await.executes();
    assert!(client.due(DueKind::Lease).await.items.is_empty());
    assert_eq!(client.watch(&ticket.key).await, Err(Refusal::NotDue));
    Ok(())
}

pub async fn a_takeover_goes_on_after_the_last_recovery_point(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.stale = Stale::Resume;
        policy.lease = LONG;
    });
    let old = client.arrive(&request(1)).await.executes();
    client.act(&old, advance("payment_created")).await.expect("a recovery point");
    client.act(&old, advance("charged")).await.expect("another one");
    client.act(&old, Act::Extend { lease: Duration::ZERO }).await.expect("a lease that ends at once");
    let before = client.record(&old.key).await;
    let new = client.arrive(&request(1)).await.executes();
    let after = client.record(&old.key).await;
    assert_eq!(after.recovery_point.as_deref(), Some("charged"));
    assert_eq!(after.checkpoint, before.checkpoint);
    assert_eq!(after.checkpoint.as_deref(), Some(&b"done: charged"[..]));
    assert_eq!((after.operation_id, after.attempt), (before.operation_id, 2));
    assert_eq!(after.origin, Origin::Doubt);
    assert!(new.claim.holds(&after));
    Ok(())
}

pub async fn the_lease_watch_leaves_what_can_be_resumed_to_a_retry(bench: Bench) -> Checked {
    for stale in [Stale::Resume, Stale::Rerun] {
        let bench = bench.fresh().await;
        let client = bench.client().with_policy(|policy| {
            policy.stale = stale;
            policy.lease = SHORT;
        });
        let ticket = client.arrive(&request(1)).await.executes();
        let before = client.record(&ticket.key).await;
        bench.reach(before.times.lease).await;
        assert_eq!(client.watch(&ticket.key).await, Err(Refusal::LeftToRetry));
        assert_eq!(client.record(&ticket.key).await, before);
    }
    Ok(())
}

pub async fn a_finished_operation_has_no_lease_to_run_out(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = client.arrive(&request(1)).await.executes();
    let lease = client.record(&ticket.key).await.times.lease;
    client.act(&ticket, complete("done")).await.expect("the owner completes");
    bench.reach(lease).await;
    assert!(client.due(DueKind::Lease).await.items.is_empty());
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Replay);
    Ok(())
}

pub async fn what_is_in_progress_never_expires(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| {
        policy.lease = SHORT;
        policy.retention = Duration::ZERO;
        policy.tombstone = Duration::ZERO;
    });
    let ticket = client.arrive(&request(1)).await.executes();
    bench.reach(client.record(&ticket.key).await.times.lease).await;
    assert_eq!(client.reap(&ticket.key).await, Err(Refusal::NotDue));
    for kind in [DueKind::Window, DueKind::Purge] {
        assert!(client.due(kind).await.items.is_empty());
    }
    Ok(())
}
