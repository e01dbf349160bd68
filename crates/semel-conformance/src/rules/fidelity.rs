//! What is written is what is read: every value of every field, to the edges of its type.

use crate::samples::{LONG, in_state, key, next, reserved, response};
use crate::{Bench, Checked, Client};
use bytes::Bytes;
use semel::{
    Body, Draft, Fingerprint, Origin, Owner, RecipeId, State, StoreError, StoredResponse, Swap, Swapped,
    Times, Timestamp, When,
};
use std::time::Duration;

/// Through `create` and through `swap`, back by `read` and by `find`.
async fn comes_back(client: &Client, draft: Draft) {
    let created = client.insert(draft.clone()).await;
    assert_eq!(created.check(), Ok(()), "the kit writes whole records alone");
    assert_eq!(client.record(&created.key).await, created);
    assert_eq!(client.find(created.operation_id).await, Some(created.clone()));
    let swapped = Draft { version: created.version + 1, ..draft };
    let (now, outcome) = client.swap(created.expected(), swapped.clone(), None).await;
    assert_eq!(outcome, Swapped::Done);
    assert_eq!(client.record(&created.key).await, swapped.clone().at(now));
    assert_eq!(client.find(created.operation_id).await, Some(swapped.at(now)));
}

pub async fn every_state_comes_back(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, state) in (0..).zip(State::ALL) {
        comes_back(&client, in_state(state, key(number))).await;
    }
    Ok(())
}

pub async fn every_origin_comes_back(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, origin) in (0..).zip([Origin::First, Origin::Retry, Origin::Doubt]) {
        comes_back(&client, Draft { origin, ..reserved(key(number)) }).await;
    }
    Ok(())
}

pub async fn hashes_and_tokens_come_back_whatever_their_bytes(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, byte) in (0..).zip([0x00, 0x7f, 0x80, 0xff]) {
        let draft = Draft {
            fingerprint: Fingerprint([byte; 32]),
            recipe: RecipeId([byte; 16]),
            owner: Owner::from_bytes([byte; 16]),
            operation_id: semel::OperationId::from_bytes([byte; 16]),
            ..reserved(key(number))
        };
        comes_back(&client, draft).await;
    }
    Ok(())
}

pub async fn counters_come_back_to_their_edges(bench: Bench) -> Checked {
    let client = bench.client();
    // A version goes up by one per write and so never comes near the edge of a signed 64-bit column; `comes_back` adds one.
    let greatest = u64::try_from(i64::MAX).expect("positive") - 1;
    for (number, (version, attempt, asked)) in
        (0..).zip([(1, 1, 0), (greatest, u32::MAX, u32::MAX), (1 << 53, 1 << 31, 1 << 31)])
    {
        let draft =
            Draft { version, attempt, reconcile_attempts: asked, ..in_state(State::Unknown, key(number)) };
        comes_back(&client, draft).await;
    }
    Ok(())
}

pub async fn points_checkpoints_and_errors_come_back(bench: Bench) -> Checked {
    let client = bench.client();
    let texts = [None, Some(String::new()), Some("charged".into()), Some("\0 '\" \u{1f512}\n".into())];
    let bytes = [
        None,
        Some(Bytes::new()),
        Some(Bytes::from_static(b"\0\xff\x80 not text")),
        Some(Bytes::from(vec![0xaa; 300_000])),
    ];
    for (number, (text, checkpoint)) in (0..).zip(texts.into_iter().zip(bytes)) {
        let draft =
            Draft { recovery_point: text.clone(), last_error: text, checkpoint, ..reserved(key(number)) };
        comes_back(&client, draft).await;
    }
    Ok(())
}

pub async fn moments_come_back_to_their_edges(bench: Bench) -> Checked {
    let client = bench.client();
    let moments = [i64::MIN, -1, 0, 1, 1 << 53, i64::MAX].map(Timestamp::from_millis);
    for (number, moment) in (0..).zip(moments) {
        let at = When::At(moment);
        let times = Times {
            created: at,
            lease: at,
            completed: Some(at),
            body_expires: Some(at),
            expires: Some(at),
            purge: Some(at),
            reconcile: Some(at),
        };
        comes_back(&client, Draft { times, ..in_state(State::Completed, key(number)) }).await;
    }
    Ok(())
}

pub async fn moments_that_are_not_set_stay_so(bench: Bench) -> Checked {
    let client = bench.client();
    // A tombstone for ever, and each optional moment absent on its own.
    let mut number = 0;
    for state in [State::Completed, State::Expired] {
        let mut forever = in_state(state, key(number));
        forever.times.purge = None;
        comes_back(&client, forever).await;
        number += 1;
    }
    for (completed, reconcile) in [(None, Some(When::In(LONG))), (Some(When::In(LONG)), None), (None, None)] {
        let mut draft = in_state(State::Unknown, key(number));
        (draft.times.completed, draft.times.reconcile) = (completed, reconcile);
        comes_back(&client, draft).await;
        number += 1;
    }
    Ok(())
}

pub async fn a_duration_beyond_the_end_of_time_ends_there(bench: Bench) -> Checked {
    let client = bench.client();
    let mut draft = in_state(State::Completed, key(1));
    draft.times.expires = Some(When::In(Duration::MAX));
    draft.times.purge = Some(When::In(Duration::from_millis(u64::MAX)));
    comes_back(&client, draft).await;
    assert_eq!(client.record(&key(1)).await.times.expires, Some(Timestamp::from_millis(i64::MAX)));
    Ok(())
}

pub async fn a_field_that_is_cleared_is_cleared(bench: Bench) -> Checked {
    let client = bench.client();
    let mut full = in_state(State::Completed, key(1));
    full.recovery_point = Some("charged".into());
    full.checkpoint = Some(Bytes::from_static(b"checkpoint"));
    full.last_error = Some("error".into());
    full.times.body_expires = Some(When::In(LONG));
    let record = client.insert(full).await;
    // What a tombstone keeps: nothing that the first version had and this one has not may shine through.
    let bare = Draft { version: 2, operation_id: record.operation_id, ..in_state(State::Expired, key(1)) };
    let (now, outcome) = client.swap(record.expected(), bare.clone(), None).await;
    assert_eq!(outcome, Swapped::Done);
    assert_eq!(client.record(&key(1)).await, bare.at(now));
    Ok(())
}

pub async fn a_record_without_its_body_is_not_written(bench: Bench) -> Checked {
    let client = bench.client();
    let omitted = Some(StoredResponse { body: Body::Omitted, ..response("") });
    let record = client.insert(in_state(State::Completed, key(1))).await;
    let sound = client.insert(reserved(key(2))).await;
    // What `list` or `due` gave, written back: it would lose the body. A sound item beside it is not done either, for an error
    // that does not say "lost" says that nothing was.
    let careless = Swap {
        expected: record.expected(),
        next: Box::new(Draft { response: omitted.clone(), ..next(&record) }),
        history: None,
    };
    let beside = Swap { expected: sound.expected(), next: Box::new(next(&sound)), history: None };
    let swapped = client.store.swap(vec![beside, careless]).await;
    assert!(matches!(swapped, Err(ref error) if !matches!(error, StoreError::Lost(_))), "{swapped:?}");
    assert_eq!(client.record(&key(1)).await, record);
    assert_eq!(client.record(&key(2)).await, sound);
    let draft = Draft { response: omitted, ..in_state(State::Completed, key(3)) };
    let created = client.store.create(vec![draft]).await;
    assert!(matches!(created, Err(ref error) if !matches!(error, StoreError::Lost(_))), "{created:?}");
    assert_eq!(client.read(&key(3)).await, None);
    Ok(())
}
