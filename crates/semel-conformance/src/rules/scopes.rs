//! Keys that name one request across all operations of their tenant.

use super::races::at_once;
use crate::samples::{LONG, complete_within, in_state, key, next, reserved};
use crate::{Bench, Checked, Client, Request};
use semel::seal::SEALED_KEY;
use semel::transition::{Arrived, Windows};
use semel::{
    Created, Draft, Expired, Filter, Fingerprint, KeyFormat, KeyFormatSet, KeyScope, Purged, RecordKey,
    Respell, State, Swapped, When,
};
use std::sync::Arc;
use std::time::Duration;

/// Names that a store could take for one with a mark before it.
const ODD_NAMES: [&str; 6] = ["", "*", "* create_payment", "** create_payment", "*\0", "create payment"];

fn across(operation: &str, number: u32) -> RecordKey {
    RecordKey { operation: operation.into(), ..key(number) }.in_scope(KeyScope::Tenant)
}

fn asking(operation: &str, number: u32) -> Request {
    Request { key: across(operation, number), fingerprint: Fingerprint([7; 32]) }
}

pub async fn a_key_across_operations_has_one_record_which_keeps_its_operation(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, operation) in (0..).zip(ODD_NAMES) {
        let record = client.insert(in_state(State::Completed, across(operation, number))).await;
        assert_eq!(record.key, across(operation, number));
        for asked in ["create_refund", "* create_refund", operation] {
            let key = across(asked, number);
            assert_eq!(client.read(&key).await.as_ref(), Some(&record), "{operation} by {asked}");
            assert_eq!(client.create(reserved(key)).await.1, Created::Exists(Box::new(record.clone())));
        }
        let mut other = across(operation, number);
        other.tenant = "globex".into();
        assert_eq!(client.read(&other).await, None, "another tenant's");
        assert_eq!(client.find(record.operation_id).await.as_ref(), Some(&record));
        client.swap(record.expected(), next(&record), None).await;
        let record = client.record(&record.key).await;
        assert_eq!((&record.key, record.version), (&across(operation, number), 2));
        assert_eq!(client.remove(record.expected()).await.1, Swapped::Done);
        assert_eq!(client.read(&across("create_refund", number)).await, None);
    }
    Ok(())
}

pub async fn keys_of_the_two_scopes_never_meet(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, operation) in (0..).zip(ODD_NAMES) {
        let wide = client.insert(reserved(across(operation, number))).await;
        let narrow = across(operation, number).in_scope(KeyScope::Operation);
        assert_eq!(client.read(&narrow).await, None, "{operation}");
        let narrow = client.insert(reserved(narrow)).await;
        for record in [wide, narrow] {
            assert_eq!(client.read(&record.key).await, Some(record));
        }
    }
    Ok(())
}

async fn one_of_many_operations_wins(clients: Vec<Client>) {
    const CROWD: usize = 24;
    for round in 0..8 {
        let came = at_once(CROWD, |number| {
            let client = clients[number % clients.len()].clone();
            let request = asking(["create_payment", "create_refund", "create_payout"][number % 3], round);
            async move { client.arrive(&request).await }
        })
        .await;
        let record = clients[0].record(&across("", round)).await;
        let (executes, told): (Vec<_>, Vec<_>) =
            came.into_iter().enumerate().partition(|(_, came)| matches!(came, crate::Came::Executes(_)));
        assert_eq!(executes.len(), 1, "one request executes, of whichever operation");
        let winner = executes[0].0 % 3;
        for (number, came) in told {
            let (arrived, found) = came.told();
            assert_eq!(found, record, "all see the winner's record");
            match number % 3 == winner {
                true => assert!(matches!(arrived, Arrived::InProgress { .. }), "{arrived:?}"),
                false => assert_eq!(arrived, Arrived::KeyReused),
            }
        }
    }
}

pub async fn of_many_operations_at_once_under_one_key_exactly_one_executes(bench: Bench) -> Checked {
    one_of_many_operations_wins(vec![bench.client()]).await;
    Ok(())
}

pub async fn of_many_operations_over_two_instances_under_one_key_exactly_one_executes(
    bench: Bench,
) -> Checked {
    one_of_many_operations_wins(vec![bench.client(), bench.another().await?]).await;
    Ok(())
}

pub async fn another_operation_is_refused_for_as_long_as_the_tombstone_stands(bench: Bench) -> Checked {
    let client = bench.client();
    // An operation that forgets at once says nothing of another one's tombstone.
    let forgetful = client.with_policy(|policy| policy.expired = Expired::New);
    let ticket = client.arrive(&asking("create_payment", 1)).await.executes();
    let refused = async || forgetful.arrive(&asking("create_refund", 1)).await.told().0;
    assert_eq!(refused().await, Arrived::KeyReused);
    let windows = Windows { retention: Duration::ZERO, body_retention: Duration::ZERO, tombstone: LONG };
    client.act(&ticket, complete_within("paid", windows)).await.expect("the owner completes");
    assert_eq!(refused().await, Arrived::KeyReused, "its window is over");
    assert_eq!(client.arrive(&asking("create_payment", 1)).await.told().0, Arrived::Expired);
    forgetful.arrive(&asking("create_payment", 1)).await.executes();
    Ok(())
}

pub async fn an_operation_is_listed_by_its_name_in_either_scope(bench: Bench) -> Checked {
    let client = bench.client();
    let mut records = Vec::new();
    for (number, operation) in (0..).zip(ODD_NAMES) {
        for scope in KeyScope::ALL {
            records.push(client.insert(reserved(across(operation, number).in_scope(scope))).await);
        }
    }
    let list = async |filter: Filter| {
        let page = client.store.list(filter, None, 100).await.expect("the store lists");
        let mut keys: Vec<RecordKey> = page.records.into_iter().map(|record| record.key).collect();
        keys.sort();
        keys
    };
    for record in &records {
        let RecordKey { tenant, operation, key, .. } = &record.key;
        let mut both: Vec<_> = KeyScope::ALL.map(|scope| record.key.clone().in_scope(scope)).into();
        both.sort();
        let operation = Filter { operation: Some(operation.to_string()), ..Filter::default() };
        assert_eq!(list(operation.clone()).await, both, "{record:?}");
        let named = Filter { tenant: Some(tenant.to_string()), key: Some(key.to_string()), ..operation };
        assert_eq!(list(named).await, both, "{record:?}");
    }
    assert_eq!(list(Filter { operation: Some("create_refund".into()), ..Filter::default() }).await, []);
    Ok(())
}

pub async fn what_is_purged_is_told_by_its_operations_name(bench: Bench) -> Checked {
    let client = bench.client();
    for (number, operation) in (0..).zip(ODD_NAMES) {
        let mut draft = in_state(State::Completed, across(operation, number));
        draft.times.purge = Some(When::NOW);
        let record = client.insert(draft).await;
        let since = record.times.purge.expect("it was to be removed");
        assert_eq!(client.purge(10).await, [Purged { operation: operation.into(), since }]);
        client.insert(reserved(across("create_refund", number))).await;
    }
    Ok(())
}

pub async fn a_key_across_operations_is_respelt_as_one(bench: Bench) -> Checked {
    bench.respells()?;
    let (store, client) = (bench.store(), bench.client());
    let sealed =
        |key: &RecordKey| RecordKey { key: format!("{SEALED_KEY}{}", key.key).into(), ..key.clone() };
    let record = client.insert(in_state(State::Completed, across("create_payment", 1))).await;
    let respell: Respell =
        Arc::new(move |record| Ok(Box::new(Draft { key: sealed(&record.key), ..next(record) })));
    let format = KeyFormat::Sealed { secret: "a sealed secret".into() };
    match store.set_key_format(format.clone(), Some(respell)).await.expect("the store answers") {
        KeyFormatSet::InForce(now) => assert_eq!(now, format),
        other => panic!("{other:?}"),
    }
    let found = client.record(&sealed(&across("create_refund", 1))).await;
    assert_eq!((found.operation_id, found.key), (record.operation_id, sealed(&record.key)));
    Ok(())
}
