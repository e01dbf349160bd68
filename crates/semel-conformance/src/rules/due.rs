//! What waits for something whose time has come: by the store's now, earliest first, bounded.

use crate::samples::{LONG, in_state, key, next, reserved};
use crate::{Bench, Checked, Client};
use bytes::Bytes;
use semel::{Body, Draft, DueKind, DueQuery, OperationId, Record, State, Timestamp, When};
use std::time::Duration;

/// A record that waits for this, at this moment.
fn waiting(kind: DueKind, at: When, number: u32) -> Draft {
    let mut draft = match kind {
        DueKind::Lease => reserved(key(number)),
        DueKind::Reconcile => in_state(State::Unknown, key(number)),
        DueKind::Window => with_checkpoint(in_state(State::Completed, key(number))),
        DueKind::Purge => in_state(State::Completed, key(number)),
    };
    match kind {
        DueKind::Lease => draft.times.lease = at,
        DueKind::Reconcile => draft.times.reconcile = Some(at),
        DueKind::Window => draft.times.expires = Some(at),
        DueKind::Purge => draft.times.purge = Some(at),
    }
    draft
}

/// What is to go when the window is over, and is in the record itself.
fn with_checkpoint(draft: Draft) -> Draft {
    Draft { checkpoint: Some(Bytes::from_static(b"checkpoint")), ..draft }
}

async fn due(client: &Client, query: DueQuery) -> Vec<Record> {
    client.store.due(query).await.expect("the store tells what is due").items
}

fn place(record: &Record) -> (Timestamp, OperationId) {
    (record.due().expect("it waits for something").1, record.operation_id)
}

pub async fn each_kind_is_due_under_its_own_name_alone(bench: Bench) -> Checked {
    let client = bench.client();
    let mut records = Vec::new();
    for (number, kind) in (0..).zip(DueKind::ALL) {
        records.push(client.insert(waiting(kind, When::NOW, number)).await);
    }
    for (record, kind) in records.iter().zip(DueKind::ALL) {
        let found = client.due(kind).await.items;
        assert_eq!(found.iter().map(place).collect::<Vec<_>>(), [place(record)], "{kind:?}");
    }
    Ok(())
}

pub async fn nothing_is_due_before_its_time(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, kind) in (0..).zip(DueKind::ALL) {
        client.insert(waiting(kind, When::In(LONG), number)).await;
        assert!(client.due(kind).await.items.is_empty(), "{kind:?}");
    }
    Ok(())
}

pub async fn what_is_due_is_judged_by_the_time_that_is_told(bench: Bench) -> Checked {
    let client = bench.client();
    let mut moments = Vec::new();
    for number in 0..20 {
        let at = When::In(Duration::from_millis(u64::from(number) * 2));
        moments.push(client.insert(waiting(DueKind::Lease, at, number)).await.times.lease);
    }
    let last = *moments.iter().max().expect("there are some");
    loop {
        let answer = client.due(DueKind::Lease).await;
        let expected = moments.iter().filter(|moment| moment.has_come(answer.now)).count();
        assert_eq!(answer.items.len(), expected, "at {:?} of {moments:?}", answer.now);
        if last.has_come(answer.now) {
            return Ok(());
        }
        bench.pass(Duration::from_millis(3)).await;
    }
}

pub async fn what_is_due_comes_in_the_order_of_time_then_of_ids(bench: Bench) -> Checked {
    let client = bench.client();
    let now = client.now().await.as_millis();
    for kind in DueKind::ALL {
        // Moments on both sides of 1970, some of them equal; ids in no order, from both halves of their range.
        let moments = [now, now - 5, -7, now - 5, 0, now - 5, i64::MIN, now, -7, now - 1_000_000];
        let mut expected = Vec::new();
        for (number, moment) in (0..).zip(moments) {
            let number = number + 100 * u32::try_from(expected.len()).expect("small");
            let mut draft = waiting(kind, When::At(Timestamp::from_millis(moment)), number);
            draft.key.operation = format!("{kind:?}").into();
            draft.operation_id = OperationId::from_u128(
                u128::from(number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835) ^ kind as u128,
            );
            expected.push(place(&client.insert(draft).await));
        }
        expected.sort_unstable();
        let found: Vec<_> = client.due(kind).await.items.iter().map(place).collect();
        assert_eq!(found, expected, "{kind:?}");
    }
    Ok(())
}

pub async fn a_caller_is_given_no_more_than_it_asks_for_and_goes_on_from_there(bench: Bench) -> Checked {
    let client = bench.client();
    // Several of each moment, so that a page ends between equals.
    let moment = client.now().await;
    let mut expected = Vec::new();
    for number in 0..23 {
        let at = Timestamp::from_millis(moment.as_millis() - i64::from(number / 6));
        expected.push(place(&client.insert(waiting(DueKind::Lease, When::At(at), number)).await));
    }
    expected.sort_unstable();
    for limit in [1, 4, 6, 23, 100] {
        let mut found: Vec<(Timestamp, OperationId)> = Vec::new();
        loop {
            let query = DueQuery { kind: DueKind::Lease, after: found.last().copied(), limit };
            let page = due(&client, query).await;
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            found.extend(page.iter().map(place));
        }
        assert_eq!(found, expected, "{limit} at a time");
    }
    Ok(())
}

pub async fn what_a_caller_leaves_be_can_be_passed_over(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.insert(waiting(DueKind::Lease, When::NOW, 1)).await;
    let at = When::At(Timestamp::from_millis(first.times.lease.as_millis() - 1));
    let earlier = client.insert(waiting(DueKind::Lease, at, 2)).await;
    let query = DueQuery { kind: DueKind::Lease, after: Some(place(&earlier)), limit: 10 };
    assert_eq!(due(&client, query).await.iter().map(place).collect::<Vec<_>>(), [place(&first)]);
    let query = DueQuery { kind: DueKind::Lease, after: Some(place(&first)), limit: 10 };
    assert!(due(&client, query).await.is_empty());
    // The place need not be that of a record that is still there.
    client.remove(earlier.expected()).await;
    let query = DueQuery { kind: DueKind::Lease, after: Some(place(&earlier)), limit: 10 };
    assert_eq!(due(&client, query).await.len(), 1);
    Ok(())
}

pub async fn a_record_that_was_seen_to_waits_for_the_next_thing(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(waiting(DueKind::Window, When::NOW, 1)).await;
    let mut draft = next(&record);
    (draft.state, draft.response, draft.checkpoint) = (State::Expired, None, None);
    draft.times.purge = Some(When::NOW);
    client.swap(record.expected(), draft, None).await;
    assert!(client.due(DueKind::Window).await.items.is_empty());
    assert_eq!(client.due(DueKind::Purge).await.items.len(), 1);
    let record = client.record(&key(1)).await;
    client.remove(record.expected()).await;
    assert!(client.due(DueKind::Purge).await.items.is_empty());
    Ok(())
}

pub async fn a_finished_record_waits_for_its_removal_alone(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, state) in (0..).zip([State::Completed, State::FailedReplayable, State::FailedRetryable]) {
        let mut draft = in_state(state, key(number));
        (draft.times.expires, draft.times.purge) = (Some(When::NOW), Some(When::In(LONG)));
        let kept = client.insert(draft).await;
        for kind in DueKind::ALL {
            assert!(client.due(kind).await.items.is_empty(), "{state:?}, {kind:?}");
        }
        let mut draft = next(&kept);
        draft.times.purge = Some(When::NOW);
        client.swap(kept.expected(), draft, None).await;
        let found = client.due(DueKind::Purge).await.items;
        assert_eq!(found.iter().map(|record| record.state).collect::<Vec<_>>(), [state]);
        client.remove(found[0].expected()).await;
    }
    Ok(())
}

pub async fn a_dead_letter_waits_for_nothing(bench: Bench) -> Checked {
    let client = bench.client();
    let mut draft = in_state(State::Unknown, key(1));
    (draft.dead_letter, draft.times.lease) = (true, When::NOW);
    client.insert(draft).await;
    for kind in DueKind::ALL {
        assert!(client.due(kind).await.items.is_empty(), "{kind:?}");
    }
    Ok(())
}

pub async fn what_is_due_comes_without_bodies_and_otherwise_whole(bench: Bench) -> Checked {
    let client = bench.client();
    let mut record = client.insert(waiting(DueKind::Purge, When::NOW, 1)).await;
    if let Some(kept) = &mut record.response {
        (kept.body, kept.headers) = (Body::Omitted, vec![]);
    }
    assert_eq!(client.due(DueKind::Purge).await.items, [record]);
    Ok(())
}
