//! What was acknowledged is there after everything was closed and opened again.
//!
//! These rules close in an orderly way. A durable store also has a test of its own that kills a process in the middle of
//! [`kill::work`](crate::kill::work), and checks the same with [`kill::Ledger`](crate::kill::Ledger).

use crate::samples::{LONG, SHORT, complete, doubt, key, next, request, reserved, response, retryable};
use crate::{Bench, Checked};
use bytes::Bytes;
use semel::transition::{Act, Arrived};
use semel::{DueKind, Filter, Settling, Stale, State, Swapped};
use std::time::Duration;

pub async fn every_acknowledged_record_is_there_and_unchanged(bench: Bench) -> Checked {
    let client = bench.client();
    let acts = [None, Some(complete("done")), Some(retryable()), Some(doubt(Settling::Webhook))];
    let mut before = Vec::new();
    for (number, act) in (0..).zip(acts) {
        let ticket = client.arrive(&request(number)).await.executes();
        if let Some(act) = act {
            client.act(&ticket, act).await.expect("the owner acts");
        }
        before.push((client.record(&ticket.key).await, client.history(ticket.claim.operation_id).await));
    }
    let listed = client.list(&Filter::default(), 2).await;
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    for (record, history) in &before {
        assert_eq!(client.read(&record.key).await.as_ref(), Some(record));
        assert_eq!(client.find(record.operation_id).await.as_ref(), Some(record));
        assert_eq!(client.history(record.operation_id).await, *history);
    }
    assert_eq!(client.list(&Filter::default(), 3).await, listed);
    Ok(())
}

pub async fn what_was_completed_is_replayed(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    client.act(&ticket, complete("done")).await.expect("the owner completes");
    drop(client);
    let bench = bench.reopened().await?;
    let (told, record) = bench.client().arrive(&request(1)).await.told();
    assert_eq!((told, record.response), (Arrived::Replay, Some(response("done"))));
    Ok(())
}

pub async fn what_was_in_progress_is_in_progress_then_unknown_and_never_executes(bench: Bench) -> Checked {
    let client = bench.client();
    client.with_policy(|policy| policy.lease = LONG).arrive(&request(1)).await.executes();
    client.with_policy(|policy| policy.lease = SHORT).arrive(&request(2)).await.executes();
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    assert!(matches!(client.arrive(&request(1)).await.told().0, Arrived::InProgress { .. }));
    bench.reach(client.record(&key(2)).await.times.lease).await;
    // A whole lease has to pass after a start.
    bench.pass(SHORT).await;
    let client = client.with_policy(|policy| policy.lease = SHORT);
    assert_eq!(client.due(DueKind::Lease).await.items.len(), 1);
    assert_eq!(client.arrive(&request(2)).await.told().0, Arrived::Unknown);
    Ok(())
}

pub async fn an_owner_goes_on_with_its_token(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    drop(client);
    let bench = bench.reopened().await?;
    bench.client().act(&ticket, complete("done")).await.expect("the owner is who it was");
    Ok(())
}

pub async fn whoever_was_fenced_stays_fenced(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.stale = Stale::Resume);
    let old = client.arrive(&request(1)).await.executes();
    client.act(&old, Act::Extend { lease: Duration::ZERO }).await.expect("a lease that ends at once");
    let new = client.arrive(&request(1)).await.executes();
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    assert!(client.act(&old, complete("late")).await.is_err());
    client.act(&new, complete("done")).await.expect("the new owner has the word");
    Ok(())
}

pub async fn what_was_removed_stays_away(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(reserved(key(1))).await;
    assert_eq!(client.remove(record.expected()).await.1, Swapped::Done);
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    assert_eq!(client.read(&key(1)).await, None);
    assert_eq!(client.find(record.operation_id).await, None);
    assert!(client.list(&Filter::default(), 10).await.is_empty());
    Ok(())
}

pub async fn time_does_not_go_back_over_a_restart(bench: Bench) -> Checked {
    let client = bench.client();
    let mut last = client.create(reserved(key(0))).await.0;
    drop(client);
    let mut bench = bench;
    for round in 1..4 {
        bench = bench.reopened().await?;
        let client = bench.client();
        let (now, _) = client.create(reserved(key(round))).await;
        assert!(now >= last, "time went back from {last:?} to {now:?}");
        last = now;
    }
    Ok(())
}

pub async fn new_records_come_before_the_old_ones_in_a_listing(bench: Bench) -> Checked {
    let client = bench.client();
    let mut expected = Vec::new();
    for number in 0..3 {
        expected.insert(0, client.insert(reserved(key(number))).await.operation_id);
    }
    // The last one goes: its place must not be given away again to be taken for it.
    let last = client.record(&key(2)).await;
    client.remove(last.expected()).await;
    expected.remove(0);
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    for number in 3..6 {
        expected.insert(0, client.insert(reserved(key(number))).await.operation_id);
    }
    let listed: Vec<_> =
        client.list(&Filter::default(), 2).await.iter().map(|record| record.operation_id).collect();
    assert_eq!(listed, expected);
    Ok(())
}

pub async fn what_was_remembered_is_recalled(bench: Bench) -> Checked {
    let store = bench.store();
    store.remember("secret".into(), Bytes::from("first")).await.expect("the store remembers");
    drop(store);
    let bench = bench.reopened().await?;
    let store = bench.store();
    assert_eq!(store.recall("secret".into()).await.expect("the store recalls"), Some(Bytes::from("first")));
    let kept = store.remember("secret".into(), Bytes::from("second")).await.expect("the store remembers");
    assert_eq!(kept, Bytes::from("first"));
    Ok(())
}

pub async fn many_changes_of_one_record_leave_the_last(bench: Bench) -> Checked {
    let client = bench.client();
    let mut record = client.insert(reserved(key(1))).await;
    for _ in 0..50 {
        let draft = next(&record);
        let (now, swapped) = client.swap(record.expected(), draft.clone(), None).await;
        assert_eq!(swapped, Swapped::Done);
        record = draft.at(now);
    }
    drop(client);
    let bench = bench.reopened().await?;
    let client = bench.client();
    assert_eq!(client.record(&key(1)).await, record);
    let in_progress = Filter { state: Some(State::InProgress), ..Filter::default() };
    assert_eq!(client.list(&in_progress, 10).await, [record]);
    Ok(())
}
