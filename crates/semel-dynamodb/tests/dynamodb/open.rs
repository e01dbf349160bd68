//! Opening: what is wrong with a table, and what to do about it.

use crate::proxy::{Fault, Table};
use semel_dynamodb::{Migrated, OpenError};

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
