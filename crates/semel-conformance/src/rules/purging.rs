//! Purging: records whose time is over are removed by that alone.

use crate::samples::{LONG, in_state, key, next, reserved};
use crate::{Bench, Checked, Client};
use semel::{Actor, DueKind, Purged, Record, State, Swapped, Timestamp, When};

/// A record that has ended, and is to be removed at this moment.
async fn over_at(client: &Client, at: When, number: u32) -> Record {
    let mut draft = in_state(State::Completed, key(number));
    draft.times.purge = Some(at);
    client.insert(draft).await
}

/// What a purge returns of a removed record.
fn purged(record: &Record) -> Purged {
    let since = record.times.purge.expect("it was to be removed");
    Purged { operation: record.key.operation.clone(), since }
}

pub async fn what_is_over_is_removed_with_its_history_and_nothing_else(bench: Bench) -> Checked {
    let client = bench.client();
    let ended = [State::Completed, State::FailedReplayable, State::FailedRetryable, State::Expired];
    for (number, state) in (0..).zip(ended) {
        let mut draft = in_state(state, key(number));
        draft.key.operation = format!("operation \u{1} {number}").into();
        draft.times.purge = Some(When::NOW);
        let over = client.insert(draft).await;
        let running = over_at(&client, When::In(LONG), 10 + number).await;
        let actor = Actor::Webhook("provider".into());
        for record in [&over, &running] {
            client.remark(&record.key, &actor, "came too late").await.expect("a history to be removed");
        }
        let running = client.record(&running.key).await;
        assert_eq!(client.purge(10).await, [purged(&over)], "{state:?}");
        assert_eq!((client.read(&over.key).await, client.find(over.operation_id).await), (None, None));
        assert_eq!(client.history(over.operation_id).await, []);
        assert_eq!(client.record(&running.key).await, running);
        assert_eq!(client.history(running.operation_id).await.len(), 1);
        assert_eq!(client.purge(10).await, [], "once");
    }
    Ok(())
}

pub async fn what_has_not_ended_is_never_removed_however_old(bench: Bench) -> Checked {
    let client = bench.client();
    let long_ago = When::At(Timestamp::from_millis(0));
    let mut records = Vec::new();
    for (number, state, dead_letter) in
        [(1, State::InProgress, false), (2, State::Unknown, false), (3, State::Unknown, true)]
    {
        let mut draft = in_state(state, key(number));
        draft.dead_letter = dead_letter;
        let times = &mut draft.times;
        (times.created, times.lease) = (long_ago, long_ago);
        times.reconcile = (state == State::Unknown && !dead_letter).then_some(long_ago);
        records.push(client.insert(draft).await);
    }
    assert_eq!(client.purge(100).await, []);
    for record in records {
        assert_eq!(client.record(&record.key).await, record);
    }
    Ok(())
}

pub async fn no_more_are_removed_than_asked_for_and_those_first_that_are_over_for_longest(
    bench: Bench,
) -> Checked {
    let client = bench.client();
    let now = client.now().await.as_millis();
    let mut over = Vec::new();
    // Some of them equal, so that a batch ends between equals; and on both sides of 1970.
    for (number, moment) in (0..).zip([now - 5, now, now - 3, -7, now - 3, i64::MIN, now - 3, now]) {
        over.push(over_at(&client, When::At(Timestamp::from_millis(moment)), number).await);
    }
    over.sort_by_key(|record| (record.times.purge, record.operation_id));
    let told: Vec<_> = over.iter().map(purged).collect();
    assert_eq!(client.purge(0).await, []);
    assert_eq!(client.purge(1).await, told[..1]);
    assert_eq!(client.purge(4).await, told[1..5]);
    for (number, record) in over.iter().enumerate() {
        assert_eq!(client.read(&record.key).await.is_none(), number < 5, "{number}");
    }
    assert_eq!(client.purge(100).await, told[5..]);
    Ok(())
}

pub async fn a_record_that_is_taken_up_again_is_not_removed(bench: Bench) -> Checked {
    let client = bench.client();
    let over = over_at(&client, When::NOW, 1).await;
    let mut draft = next(&over);
    (draft.state, draft.response, draft.times) = (State::InProgress, None, reserved(key(1)).times);
    assert_eq!(client.swap(over.expected(), draft, None).await.1, Swapped::Done);
    let taken_up = client.record(&key(1)).await;
    assert_eq!(client.purge(10).await, []);
    assert_eq!(client.record(&key(1)).await, taken_up);
    Ok(())
}

pub async fn a_key_that_was_purged_is_as_if_never_seen(bench: Bench) -> Checked {
    let client = bench.client();
    let over = over_at(&client, When::NOW, 1).await;
    client.purge(10).await;
    assert_eq!(client.swap(over.expected(), next(&over), None).await.1, Swapped::Missing);
    assert!(client.due(DueKind::Purge).await.items.is_empty());
    let again = client.insert(reserved(key(1))).await;
    assert_eq!(client.record(&key(1)).await, again);
    Ok(())
}

pub async fn several_who_purge_at_once_remove_each_record_once(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    let mut records = Vec::new();
    for number in 0..40 {
        records.push(over_at(&client, When::NOW, number).await);
    }
    let mut removed = 0;
    // Who finds the other at work may come away with nothing, and comes again.
    while removed < 40 {
        let (first, second) = tokio::join!(client.purge(7), other.purge(7));
        removed += first.len() + second.len();
    }
    assert_eq!(removed, 40);
    for record in records {
        assert_eq!(client.read(&record.key).await, None);
    }
    assert_eq!(client.purge(100).await, []);
    Ok(())
}
