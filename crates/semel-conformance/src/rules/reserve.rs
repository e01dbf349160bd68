//! Insert if absent, else tell what is there, in one atomic step.

use crate::samples::{
    advance, complete, doubt, fail, key, other_payload, release, request, reserved, retryable,
};
use crate::{Bench, Checked, Request};
use semel::transition::{Act, Arrived};
use semel::{Created, Fingerprint, RecordKey, Settling, State};

pub async fn the_first_request_executes_as_the_owner(bench: Bench) -> Checked {
    let client = bench.client();
    let ticket = client.arrive(&request(1)).await.executes();
    let record = client.record(&ticket.key).await;
    assert!(ticket.claim.holds(&record));
    assert_eq!((record.state, record.version, record.attempt), (State::InProgress, 1, 1));
    Ok(())
}

pub async fn what_was_drafted_is_what_is_read(bench: Bench) -> Checked {
    let client = bench.client();
    let draft = reserved(key(1));
    let (now, created) = client.create(draft.clone()).await;
    assert_eq!(created, Created::Inserted);
    assert_eq!(client.read(&key(1)).await, Some(draft.at(now)));
    Ok(())
}

pub async fn a_second_create_is_told_what_is_there_and_writes_nothing(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.insert(reserved(key(1))).await;
    let second = reserved(key(1));
    let (_, created) = client.create(second.clone()).await;
    assert_eq!(created, Created::Exists(Box::new(first.clone())));
    assert_eq!(client.read(&key(1)).await, Some(first));
    assert_eq!(client.find(second.operation_id).await, None, "the loser left a trace");
    Ok(())
}

pub async fn a_key_that_nobody_used_is_not_there(bench: Bench) -> Checked {
    let client = bench.client();
    client.insert(reserved(key(1))).await;
    assert_eq!(client.read(&key(2)).await, None);
    Ok(())
}

pub async fn another_tenants_same_key_is_a_fresh_operation_and_never_sees_the_others_bytes(
    bench: Bench,
) -> Checked {
    let client = bench.client();
    let of = |tenant: &str| Request {
        key: RecordKey::new(tenant, "create_payment", "the very same key"),
        fingerprint: Fingerprint([1; 32]),
    };
    let first = client.arrive(&of("acme")).await.executes();
    client.act(&first, complete("acme's secret")).await.expect("the owner completes");
    let second = client.arrive(&of("globex")).await.executes();
    assert_ne!(first.claim.operation_id, second.claim.operation_id);
    assert_eq!(client.record(&second.key).await.response, None);
    Ok(())
}

pub async fn another_operations_same_key_is_a_fresh_operation(bench: Bench) -> Checked {
    let client = bench.client();
    for operation in ["create_payment", "create_refund"] {
        let key = RecordKey::new("acme", operation, "the very same key");
        client.arrive(&Request { key, fingerprint: Fingerprint([1; 32]) }).await.executes();
    }
    Ok(())
}

pub async fn names_that_read_the_same_when_joined_are_different_keys(bench: Bench) -> Checked {
    let client = bench.client();
    let names = [
        ["ab", "c", "d"],
        ["a", "bc", "d"],
        ["a", "b", "cd"],
        ["abc", "", "d"],
        ["", "abc", "d"],
        ["a/b", "c", "d"],
        ["a", "b/c", "d"],
        ["a:b", "c", "d"],
        ["a", "b:c", "d"],
        ["a\0b", "c", "d"],
        ["a", "b\0c", "d"],
        ["a\u{1f}b", "c", "d"],
        ["a", "b\u{1f}c", "d"],
        ["1:a", "1:b", "d"],
        ["1:a1:b", "", "d"],
    ];
    keep_apart(&client, &names).await;
    Ok(())
}

pub async fn keys_are_compared_byte_by_byte(bench: Bench) -> Checked {
    let client = bench.client();
    // What a collation, a trimming column type or a normalising driver would take for the same.
    let names = [
        ["t", "o", "key"],
        ["t", "o", "KEY"],
        ["t", "o", "Key"],
        ["t", "o", "key "],
        ["t", "o", " key"],
        ["t", "o", "key\0"],
        ["t", "o", "key\n"],
        ["t", "o", "ke\u{301}y"],
        ["t", "o", "k\u{e9}y"],
        ["t", "o", "1"],
        ["t", "o", "01"],
        ["t", "o", "1.0"],
        ["t", "o", "%"],
        ["t", "o", "_"],
        ["t", "o", "'; DROP TABLE records; --"],
        ["t", "o", "\u{1f512}"],
        ["T", "o", "key"],
        ["t", "O", "key"],
    ];
    keep_apart(&client, &names).await;
    Ok(())
}

async fn keep_apart(client: &crate::Client, names: &[[&str; 3]]) {
    let mut records = Vec::new();
    for [tenant, operation, key] in names {
        records.push(client.insert(reserved(RecordKey::new(*tenant, *operation, *key))).await);
    }
    for record in &records {
        assert_eq!(client.read(&record.key).await.as_ref(), Some(record));
        assert_eq!(client.find(record.operation_id).await.as_ref(), Some(record));
    }
}

pub async fn a_long_key_is_kept_whole(bench: Bench) -> Checked {
    let client = bench.client();
    // Two keys of the greatest length that differ in the last character.
    let of =
        |last: char| RecordKey::new("t".repeat(255), "o".repeat(255), "k".repeat(254) + &last.to_string());
    let first = client.insert(reserved(of('a'))).await;
    let second = client.insert(reserved(of('b'))).await;
    assert_eq!(client.read(&of('a')).await, Some(first));
    assert_eq!(client.read(&of('b')).await, Some(second));
    Ok(())
}

pub async fn a_different_payload_is_refused_in_every_state(bench: Bench) -> Checked {
    let client = bench.client();
    let ends: [Option<Act>; 6] = [
        None,
        Some(complete("done")),
        Some(fail("failed")),
        Some(retryable()),
        Some(doubt(Settling::Webhook)),
        Some(advance("charged")),
    ];
    for (number, end) in (0..).zip(ends) {
        let ticket = client.arrive(&request(number)).await.executes();
        if let Some(act) = end {
            client.act(&ticket, act).await.expect("the owner acts");
        }
        let before = client.record(&ticket.key).await;
        let (told, _) = client.arrive(&other_payload(&request(number))).await.told();
        assert_eq!(told, Arrived::KeyReused, "in {:?}", before.state);
        assert_eq!(client.record(&ticket.key).await, before, "a refused request changes nothing");
    }
    Ok(())
}

pub async fn a_released_key_is_as_if_never_seen(bench: Bench) -> Checked {
    let client = bench.client();
    let first = client.arrive(&request(1)).await.executes();
    client.act(&first, release()).await.expect("the first attempt may be released");
    assert_eq!(client.read(&first.key).await, None);
    assert_eq!(client.find(first.claim.operation_id).await, None);
    // Another payload too: nothing is remembered that it could be held against.
    let second = client.arrive(&other_payload(&request(1))).await.executes();
    assert_ne!(first.claim.operation_id, second.claim.operation_id);
    assert_eq!(second.claim.attempt, 1);
    Ok(())
}
