//! Answers: kept apart from their records, and dropped by their time alone.

use crate::samples::{LONG, in_state, key, next, reserved, response};
use crate::{Bench, Checked, Client};
use bytes::Bytes;
use semel::{Body, Record, State, StoredResponse, Swapped, Timestamp, When};

/// A completed record whose answer is over at this moment.
async fn over_at(client: &Client, at: When, number: u32) -> Record {
    let mut draft = in_state(State::Completed, key(number));
    draft.times.body_expires = Some(at);
    client.insert(draft).await
}

/// The record, after its answer was dropped.
fn without_answer(record: &Record) -> Record {
    let mut record = record.clone();
    let response = record.response.as_mut().expect("it has an answer");
    (response.headers, response.body) = (vec![], Body::Dropped);
    record
}

pub async fn what_is_over_is_dropped_and_nothing_else_changes(bench: Bench) -> Checked {
    let client = bench.client();
    let over = over_at(&client, When::NOW, 1).await;
    let running = over_at(&client, When::In(LONG), 2).await;
    let mut window_over = in_state(State::FailedReplayable, key(3));
    window_over.times.expires = Some(When::NOW);
    let window_over = client.insert(window_over).await;
    let in_progress = client.insert(reserved(key(4))).await;
    assert_eq!(client.record(&key(1)).await, over, "until then it is there, though nobody may replay it");
    assert_eq!(client.drop_answers(10).await.len(), 2);
    assert_eq!(client.record(&key(1)).await, without_answer(&over));
    assert_eq!(client.find(over.operation_id).await, Some(without_answer(&over)));
    assert_eq!(client.record(&key(2)).await, running);
    assert_eq!(client.record(&key(3)).await, without_answer(&window_over));
    assert_eq!(client.record(&key(4)).await, in_progress);
    assert_eq!(client.drop_answers(10).await, [], "once");
    Ok(())
}

pub async fn nothing_is_dropped_before_its_time(bench: Bench) -> Checked {
    let client = bench.client();
    let mut records = vec![over_at(&client, When::In(LONG), 0).await];
    for (number, state) in (1..).zip(State::ALL) {
        records.push(client.insert(in_state(state, key(number))).await);
    }
    assert_eq!(client.drop_answers(100).await, []);
    for record in records {
        assert_eq!(client.record(&record.key).await, record);
    }
    Ok(())
}

pub async fn no_more_are_dropped_than_asked_for_and_those_first_that_ended_first(bench: Bench) -> Checked {
    let client = bench.client();
    let now = client.now().await.as_millis();
    // Some of them equal, so that a batch ends between equals.
    let mut ends: Vec<_> =
        [5, 0, 3, 3, 9, 3, 7, 0].map(|before| Timestamp::from_millis(now - before)).to_vec();
    for (number, end) in (0..).zip(&ends) {
        over_at(&client, When::At(*end), number).await;
    }
    ends.sort_unstable();
    assert_eq!(client.drop_answers(0).await, []);
    assert_eq!(client.drop_answers(1).await, ends[..1]);
    assert_eq!(client.drop_answers(3).await, ends[1..4]);
    let mut dropped = 0;
    for number in 0..8 {
        let body = client.record(&key(number)).await.response.expect("the status stays").body;
        dropped += usize::from(body == Body::Dropped);
    }
    assert_eq!(dropped, 4);
    assert_eq!(client.drop_answers(100).await, ends[4..]);
    Ok(())
}

pub async fn an_answer_that_is_spelt_anew_is_the_one_that_is_read(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(in_state(State::Completed, key(1))).await;
    let mut draft = next(&record);
    let again = StoredResponse { body: Body::Sealed(Bytes::from_static(b"sealed")), ..response("") };
    draft.response = Some(again.clone());
    assert_eq!(client.swap(record.expected(), draft, None).await.1, Swapped::Done);
    let record = client.record(&key(1)).await;
    assert_eq!(record.response, Some(again));
    // A swap that is not done keeps nothing.
    let mut late = next(&record);
    late.response = Some(response("late"));
    let mut expected = record.expected();
    expected.version -= 1;
    client.swap(expected, late, None).await;
    assert_eq!(client.record(&key(1)).await, record);
    Ok(())
}

pub async fn an_answer_without_anything_to_drop_takes_the_place_of_one_that_has(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(in_state(State::Completed, key(1))).await;
    let mut draft = next(&record);
    let bare = StoredResponse { body: Body::NotStored, headers: vec![], ..response("") };
    draft.response = Some(bare.clone());
    assert_eq!(client.swap(record.expected(), draft, None).await.1, Swapped::Done);
    assert_eq!(client.record(&key(1)).await.response, Some(bare));
    Ok(())
}

pub async fn a_dropped_answer_is_not_in_anybodys_way(bench: Bench) -> Checked {
    let client = bench.client();
    let record = over_at(&client, When::NOW, 1).await;
    client.drop_answers(10).await;
    let found = client.record(&key(1)).await;
    assert_eq!(found.expected(), record.expected(), "its version stays");
    // It can be written on, with what is left of its answer,
    assert_eq!(client.swap(found.expected(), next(&found), None).await.1, Swapped::Done);
    let found = client.record(&key(1)).await;
    assert_eq!(found.response.as_ref().map(|kept| &kept.body), Some(&Body::Dropped));
    // removed, and created again under the same key, without anything from before.
    assert_eq!(client.remove(found.expected()).await.1, Swapped::Done);
    let again = client.insert(reserved(key(1))).await;
    assert_eq!(client.record(&key(1)).await, again);
    Ok(())
}

pub async fn whoever_comes_after_a_removed_record_gets_nothing_of_its_answer(bench: Bench) -> Checked {
    let client = bench.client();
    let record = client.insert(in_state(State::Completed, key(1))).await;
    client.remove(record.expected()).await;
    let mut again = in_state(State::Completed, key(1));
    again.response = Some(StoredResponse { body: Body::NotStored, headers: vec![], ..response("") });
    let again = client.insert(again).await;
    assert_eq!(client.record(&key(1)).await, again);
    Ok(())
}

pub async fn several_who_drop_at_once_drop_each_answer_once(bench: Bench) -> Checked {
    let (client, other) = (bench.client(), bench.another().await?);
    for number in 0..40 {
        over_at(&client, When::NOW, number).await;
    }
    let (mut one, mut two) = (0, 0);
    // Who finds the other at work may come away with nothing, and comes again.
    while one + two < 40 {
        let (first, second) = tokio::join!(client.drop_answers(7), other.drop_answers(7));
        (one, two) = (one + first.len(), two + second.len());
    }
    assert_eq!(one + two, 40);
    assert_eq!(client.drop_answers(100).await, []);
    Ok(())
}
