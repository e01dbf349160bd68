//! Client keys have one format in a store, which refuses the other.

use super::races::at_once;
use crate::samples::{doubt, in_state, key, next, request, reserved, reserved_for};
use crate::{Bench, Checked};
use bytes::Bytes;
use semel::seal::SEALED_KEY;
use semel::{
    Created, Draft, KeyFormat, KeyFormatSet, Record, RecordKey, Respell, Settling, State, Store, StoreError,
};
use std::sync::Arc;
use std::time::Duration;

const SECRET: &[u8] = b"a sealed secret";

fn sealed_format() -> KeyFormat {
    KeyFormat::Sealed { secret: SECRET.into() }
}

/// Stands in for a sealed key: what makes one is the prefix.
fn sealed(key: &RecordKey) -> RecordKey {
    RecordKey { key: format!("{SEALED_KEY}{}", key.key).into(), ..key.clone() }
}

fn respell(how: fn(&RecordKey) -> RecordKey) -> Option<Respell> {
    Some(Arc::new(move |record: &Record| Ok(Box::new(Draft { key: how(&record.key), ..next(record) }))))
}

fn plain(key: &RecordKey) -> RecordKey {
    let text = key.key.strip_prefix(SEALED_KEY).expect("it is sealed");
    RecordKey { key: text.into(), ..key.clone() }
}

async fn set(store: &Arc<dyn Store>, format: KeyFormat, respell: Option<Respell>) -> KeyFormatSet {
    store.set_key_format(format, respell).await.expect("the store answers")
}

async fn is_refused(store: &Arc<dyn Store>, key: RecordKey) -> bool {
    let draft = reserved(key);
    let id = draft.operation_id;
    let refused = matches!(store.create(vec![draft]).await, Err(StoreError::Unavailable(_)));
    let found = store.find(vec![id]).await.expect("the store answers").items;
    assert_eq!(found[0].is_none(), refused, "what is refused is not there");
    refused
}

pub async fn a_value_is_replaced_if_it_is_the_expected_one(bench: Bench) -> Checked {
    let store = bench.store();
    let replace = async |expected: &'static str, value: &'static str| {
        store.replace("secret".into(), expected.into(), value.into()).await.expect("the store replaces")
    };
    assert_eq!(replace("", "first").await, None, "nothing is there to be replaced");
    store.remember("secret".into(), "first".into()).await.expect("the store remembers");
    assert_eq!(replace("other", "second").await, Some("first".into()));
    assert_eq!(replace("first", "second").await, Some("second".into()));
    let recalled = store.recall("secret".into()).await.expect("the store recalls");
    assert_eq!(recalled, Some(Bytes::from("second")));
    Ok(())
}

pub async fn a_store_that_was_never_used_takes_sealed_keys_and_refuses_plain_ones(bench: Bench) -> Checked {
    let store = bench.store();
    assert_eq!(set(&store, KeyFormat::Plain, None).await, KeyFormatSet::InForce(KeyFormat::Plain));
    store.remember("secret/another".into(), "value".into()).await.expect("the store remembers");
    assert_eq!(set(&store, sealed_format(), None).await, KeyFormatSet::InForce(sealed_format()));
    assert_eq!(store.recall(KeyFormat::SECRET.into()).await.expect("the store recalls"), Some(SECRET.into()));
    let second = KeyFormat::Sealed { secret: "another secret".into() };
    assert_eq!(
        set(&store, second, None).await,
        KeyFormatSet::InForce(sealed_format()),
        "the first one stays"
    );
    assert!(is_refused(&store, key(1)).await);
    assert!(!is_refused(&store, sealed(&key(1))).await);
    // An instance that learnt the format before, or never did.
    let another = bench.another().await?.store;
    assert!(is_refused(&another, key(2)).await);
    assert!(!is_refused(&another, sealed(&key(2))).await);
    Ok(())
}

pub async fn a_store_that_was_used_keeps_its_format(bench: Bench) -> Checked {
    let (store, client) = (bench.store(), bench.client());
    let record = client.insert(reserved(key(1))).await;
    assert_eq!(set(&store, sealed_format(), None).await, KeyFormatSet::InUse);
    store.remove(vec![record.expected()]).await.expect("the store removes");
    store.remember("recipe/0".into(), "a recipe".into()).await.expect("the store remembers");
    assert_eq!(
        set(&store, sealed_format(), None).await,
        KeyFormatSet::InUse,
        "a recipe was kept for a record"
    );
    assert_eq!(store.recall(KeyFormat::SECRET.into()).await.expect("the store recalls"), None);
    assert!(!is_refused(&store, key(1)).await);
    Ok(())
}

pub async fn of_many_that_seal_and_reserve_at_once_all_have_one_format(bench: Bench) -> Checked {
    let store = bench.store();
    let created = at_once(16, |number| {
        let store = Arc::clone(&store);
        async move {
            if number % 4 == 0 {
                set(&store, sealed_format(), None).await;
            }
            let key = if number % 2 == 0 { sealed(&key(1)) } else { key(1) };
            let answer = store.create(vec![reserved(key)]).await;
            (number % 2 == 0, matches!(answer, Ok(answer) if answer.items == [Created::Inserted]))
        }
    })
    .await;
    let first = |sealed: bool| created.iter().filter(|(is, inserted)| *is == sealed && *inserted).count();
    if store.recall(KeyFormat::SECRET.into()).await.expect("the store recalls").is_some() {
        assert_eq!((first(true), first(false)), (1, 0), "nobody reserves the key in the other format");
    } else {
        assert!(first(false) == 1 || first(true) == 1, "the store was used before it was told to seal");
    }
    Ok(())
}

pub async fn records_are_respelt_with_all_that_belongs_to_them_and_back_again(bench: Bench) -> Checked {
    bench.respells()?;
    let (store, client) = (bench.store(), bench.client());
    for number in 0..150 {
        client.insert(in_state(State::Completed, key(number))).await;
    }
    let doubting = client.with_policy(|policy| policy.settling = Settling::Webhook);
    let ticket = doubting.arrive(&request(1000)).await.executes();
    doubting.act(&ticket, doubt(Settling::Webhook)).await.expect("the owner may");
    let before = client.record(&key(7)).await;
    for (format, how, there, gone) in [
        (sealed_format(), sealed as fn(&RecordKey) -> RecordKey, sealed(&key(7)), key(7)),
        (KeyFormat::Plain, plain, key(7), sealed(&key(7))),
    ] {
        let in_force = KeyFormatSet::InForce(format.clone());
        assert_eq!(set(&store, format, respell(how)).await, in_force);
        assert_eq!(client.read(&gone).await, None);
        let after = client.record(&there).await;
        assert!(after.version > before.version);
        let same = Record { key: before.key.clone(), version: before.version, ..after };
        assert_eq!(same, before, "the answer too");
        let listed = client.list(&semel::Filter::default(), 1_000).await;
        assert_eq!(listed.len(), 151);
        let wrong =
            |record: &&Record| record.key.key.starts_with(SEALED_KEY) != there.key.starts_with(SEALED_KEY);
        assert_eq!(listed.iter().find(wrong), None);
        assert!(!client.history(ticket.claim.operation_id).await.is_empty(), "the history stays");
        assert!(is_refused(&store, RecordKey { key: format!("{}-new", gone.key).into(), ..gone }).await);
    }
    assert_eq!(store.recall(KeyFormat::SECRET.into()).await.expect("the store recalls"), None);
    Ok(())
}

pub async fn nothing_is_respelt_while_an_operation_is_under_way_or_if_one_cannot_be(bench: Bench) -> Checked {
    bench.respells()?;
    let (store, client) = (bench.store(), bench.client());
    client.insert(in_state(State::Completed, key(1))).await;
    client.insert(reserved_for(key(2), Duration::ZERO)).await;
    let failing: Respell = Arc::new(|record: &Record| match record.key.key == key(2).key {
        true => Err(StoreError::Damaged("it does not open".into())),
        false => Ok(Box::new(Draft { key: sealed(&record.key), ..next(record) })),
    });
    let failed = store.set_key_format(sealed_format(), Some(failing)).await;
    assert!(matches!(failed, Err(StoreError::Damaged(_))), "{failed:?}");
    let under_way = client.insert(reserved(key(3))).await;
    assert_eq!(set(&store, sealed_format(), respell(sealed)).await, KeyFormatSet::UnderWay(1));
    for number in 1..=3 {
        assert!(client.read(&key(number)).await.is_some(), "all of it, or nothing");
    }
    assert!(!is_refused(&store, key(4)).await);
    store.remove(vec![under_way.expected()]).await.expect("the store removes");
    let fourth = client.record(&key(4)).await;
    store.remove(vec![fourth.expected()]).await.expect("the store removes");
    // Its lease is over, and its owner with it.
    assert_eq!(set(&store, sealed_format(), respell(sealed)).await, KeyFormatSet::InForce(sealed_format()));
    assert_eq!(client.record(&sealed(&key(2))).await.state, State::InProgress);
    Ok(())
}
