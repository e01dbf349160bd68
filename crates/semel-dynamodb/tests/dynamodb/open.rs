//! Opening: what is wrong with a table, and what to do about it.

use crate::fixture::{Fixture, create, remove, swap};
use crate::proxy::{Fault, Table};
use semel::clock::ClockRequest;
use semel::{DueKind, DueQuery, Filter, State, Store, When};
use semel_conformance::samples::{in_state, key, reserved};
use semel_dynamodb::{Migrated, OpenError};
use std::collections::BTreeSet;

#[tokio::test]
async fn a_table_is_created_once_and_then_checked() {
    let table = Table::new().await;
    let again = table.options(&table.clock).migrate(&table.url()).await.unwrap();
    assert_eq!(again, Migrated::AsItShouldBe);
    table.open().await;
}

#[tokio::test]
async fn a_missing_table_is_named_with_what_to_do() {
    let table = Table::new().await;
    let url = table.url().replace(&table.name, "no-such-table");
    let error = table.options(&table.clock).open(&url).await.unwrap_err();
    assert!(matches!(&error, OpenError::NoTable { table } if table == "no-such-table"), "{error}");
    assert!(error.to_string().contains("semel migrate"), "{error}");
}

#[tokio::test]
async fn a_missing_permission_is_named() {
    let table = Table::new().await;
    table.proxy.next("DescribeTable", "", Fault::Refused("AccessDeniedException"), 1);
    let error = table.options(&table.clock).open(&table.url()).await.unwrap_err();
    assert!(error.to_string().contains("give the role dynamodb:DescribeTable"), "{error}");
}

#[tokio::test]
async fn a_global_table_with_eventual_consistency_is_refused() {
    let table = Table::new().await;
    table.proxy.forget();
    table.open().await;
    let mut described = table.proxy.seen("DescribeTable").remove(0).1;
    described["Table"]["Replicas"] = serde_json::json!([{ "RegionName": "eu-west-1" }]);
    table.proxy.next("DescribeTable", "", Fault::Stale(described.clone()), 1);
    let error = table.options(&table.clock).open(&table.url()).await.unwrap_err();
    assert!(matches!(error, OpenError::Eventual { .. }), "{error}");
    described["Table"]["MultiRegionConsistency"] = "STRONG".into();
    table.proxy.next("DescribeTable", "", Fault::Stale(described), 1);
    table.open().await;
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named() {
    let table = Table::new().await;
    // A port that was free a moment ago: nobody listens there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let url = format!("dynamodb://semel-keys?region=local&endpoint=http://{address}");
    let error = table.options(&table.clock).open(&url).await.unwrap_err();
    assert!(matches!(error, OpenError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

/// What the guide allows a gateway to do, and no more, is what it does.
#[tokio::test]
async fn the_policy_of_the_guide_allows_what_is_asked_for() {
    let fixture = Fixture::new().await;
    drop(fixture.table.open().await);
    let store = &fixture.store;
    let record = fixture.insert(reserved(key(1))).await;
    swap(store, &record).await.unwrap();
    remove(store, &fixture.record(&key(1)).await).await.unwrap();
    let mut over = in_state(State::Completed, key(2));
    (over.times.expires, over.times.purge) = (Some(When::NOW), Some(When::NOW));
    create(store, over).await.unwrap();
    store.list(Filter::default(), None, 10).await.unwrap();
    store.count_live("acme".into(), 10).await.unwrap();
    store.due(DueQuery { kind: DueKind::Purge, after: None, limit: 10 }).await.unwrap();
    assert_eq!(store.drop_answers(10).await.unwrap().items.len(), 1);
    assert_eq!(store.purge(10).await.unwrap().items.len(), 1);
    store.remember("secret/x".into(), "value".into()).await.unwrap();
    store.clock(ClockRequest::Look).await.unwrap();
    store.sweep().await.unwrap();

    let mut asked = fixture.table.proxy.operations();
    // A transaction needs what is in it: deletions, and a condition on the clock.
    assert!(asked.remove("TransactWriteItems") && asked.insert("ConditionCheckItem".into()));
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/dynamodb.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let policy = guide.split("\"Action\": [").nth(1).unwrap().split(']').next().unwrap();
    let allowed: BTreeSet<String> =
        policy.split('"').filter_map(|word| word.strip_prefix("dynamodb:")).map(str::to_owned).collect();
    assert_eq!(asked, allowed);
}
