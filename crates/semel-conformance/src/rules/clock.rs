//! Time is the store's: it never goes back, and instances that share a store share its time.

use super::races::at_once;
use crate::samples::{LONG, SHORT, in_state, key, next, request, reserved, reserved_for};
use crate::{Bench, Checked, Client};
use semel::transition::Arrived;
use semel::{DueKind, State, Timestamp, When};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The times that consecutive calls return.
async fn every_call(client: &Client, number: u32) -> Vec<Timestamp> {
    let mut told = vec![client.now().await];
    let draft = reserved_for(key(number), SHORT);
    let (now, _) = client.create(draft.clone()).await;
    let record = draft.at(now);
    told.push(now);
    told.push(client.create(reserved(key(number))).await.0);
    let (now, _) = client.swap(record.expected(), next(&record), None).await;
    told.push(now);
    told.push(client.swap(record.expected(), next(&record), None).await.0);
    told.push(client.look(&key(number)).await.0);
    told.push(client.store.find(vec![record.operation_id]).await.expect("the store finds").now);
    told.push(client.due(DueKind::Lease).await.now);
    let record = client.record(&key(number)).await;
    told.push(client.remove(record.expected()).await.0);
    told
}

fn never_back(told: &[Timestamp]) {
    for pair in told.windows(2) {
        assert!(pair[0] <= pair[1], "time went back: {told:?}");
    }
}

pub async fn time_never_goes_back_from_call_to_call(bench: Bench) -> Checked {
    let client = bench.client();
    let mut told = Vec::new();
    for number in 0..10 {
        told.extend(every_call(&client, number).await);
    }
    never_back(&told);
    Ok(())
}

pub async fn time_never_goes_back_from_instance_to_instance(bench: Bench) -> Checked {
    let clients = [bench.client(), bench.another().await?];
    let mut told = Vec::new();
    for number in 0..10 {
        told.extend(every_call(&clients[number as usize % 2], number).await);
    }
    never_back(&told);
    Ok(())
}

pub async fn time_never_goes_back_between_tasks(bench: Bench) -> Checked {
    let client = bench.client();
    // A call that begins after another one was answered returns no earlier time.
    let highest = Arc::new(AtomicI64::new(i64::MIN));
    at_once(8, |number| {
        let (client, highest) = (client.clone(), highest.clone());
        async move {
            for round in 0..10 {
                let before = highest.load(Ordering::SeqCst);
                let number = u32::try_from(number * 100 + round).expect("small");
                let told = client.create(reserved(key(number))).await.0.as_millis();
                assert!(told >= before, "time went back from {before} to {told}");
                highest.fetch_max(told, Ordering::SeqCst);
                let before = highest.load(Ordering::SeqCst);
                let told = client.now().await.as_millis();
                assert!(told >= before, "time went back from {before} to {told} on a read");
                highest.fetch_max(told, Ordering::SeqCst);
            }
        }
    })
    .await;
    Ok(())
}

pub async fn time_goes_on(bench: Bench) -> Checked {
    let client = bench.client();
    let before = client.now().await;
    bench.reach(before.plus(SHORT)).await;
    let (now, _) = client.create(reserved(key(1))).await;
    assert!(now >= before.plus(SHORT), "a write sees no older time than a read");
    Ok(())
}

pub async fn moments_count_from_the_time_that_is_told(bench: Bench) -> Checked {
    let client = bench.client();
    let draft = in_state(State::Completed, key(1));
    let (created, _) = client.create(draft.clone()).await;
    let record = client.record(&key(1)).await;
    assert_eq!(record.times, draft.times.map(|when| when.at(created)));
    bench.pass(SHORT).await;
    let mut draft = next(&record);
    draft.times.expires = Some(When::In(LONG));
    let (swapped, _) = client.swap(record.expected(), draft, None).await;
    let after = client.record(&key(1)).await;
    assert_eq!(after.times.expires, Some(swapped.plus(LONG)));
    assert_eq!(after.times.created, created, "a moment that stands already stays");
    Ok(())
}

pub async fn all_items_of_a_batch_count_from_the_same_time(bench: Bench) -> Checked {
    let client = bench.client();
    let drafts: Vec<_> = (0..50).map(|number| reserved(key(number))).collect();
    let answer = client.store.create(drafts).await.expect("the store creates");
    for number in 0..50 {
        assert_eq!(client.record(&key(number)).await.times.created, answer.now);
    }
    Ok(())
}

pub async fn a_moment_far_off_in_a_record_does_not_move_the_clock(bench: Bench) -> Checked {
    let client = bench.client();
    let before = client.now().await;
    let mut draft = in_state(State::Completed, key(1));
    let far = When::At(before.plus(LONG * 24 * 365));
    (draft.times.created, draft.times.completed) = (far, Some(far));
    (draft.times.expires, draft.times.purge) = (Some(far), Some(far));
    client.insert(draft).await;
    let after = client.now().await;
    assert!(after < before.plus(LONG), "the clock jumped from {before:?} to {after:?}");
    Ok(())
}

pub async fn a_clock_that_is_set_back_stands_still_for_the_store(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = client.arrive(&request(1)).await.executes();
    let before = client.now().await;
    bench.set_back(LONG)?;
    let mut told = vec![before];
    told.extend(every_call(&client, 2).await);
    never_back(&told);
    // And a lease is not made longer by it than the clock takes to come back.
    assert_eq!(client.record(&ticket.key).await.times.lease, before.plus(SHORT));
    bench.pass(LONG + SHORT).await;
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Unknown);
    Ok(())
}

pub async fn a_clock_that_leaps_ahead_causes_doubt_and_never_an_execution(bench: Bench) -> Checked {
    let client = bench.client().with_policy(|policy| policy.lease = SHORT);
    let ticket = client.arrive(&request(1)).await.executes();
    bench.pass(SHORT * 4).await;
    assert_eq!(client.arrive(&request(1)).await.told().0, Arrived::Unknown);
    client.act(&ticket, crate::samples::complete("done")).await.expect("the owner was at work all the time");
    Ok(())
}
