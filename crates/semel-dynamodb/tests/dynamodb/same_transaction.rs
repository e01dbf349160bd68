//! The outcome and the application's own items in one transaction.

use crate::fixture::{Fixture, swap};
use crate::proxy::Fault;
use semel::transition::{Claim, Refusal};
use semel::{Record, State, StoreError, Swapped};
use semel_conformance::samples::{complete, key, release, reserved};
use semel_dynamodb::CommitError;
use serde_json::{Value, json};

/// An item of the application's, unless that name is taken.
fn payment(fixture: &Fixture, id: &str) -> Value {
    json!({ "Put": {
        "TableName": fixture.table.name,
        "Item": { "p": { "S": format!("app#{id}") } },
        "ConditionExpression": "attribute_not_exists(p)",
    } })
}

async fn is_there(fixture: &Fixture, id: &str) -> bool {
    let request = json!({
        "TableName": fixture.table.name, "Key": { "p": { "S": format!("app#{id}") } }, "ConsistentRead": true
    });
    fixture.table.proxy.ask("GetItem", &request).await.get("Item").is_some()
}

async fn reserved_record(fixture: &Fixture, number: u32) -> (Record, Claim) {
    let record = fixture.insert(reserved(key(number))).await;
    let claim = Claim::of(&record);
    (record, claim)
}

#[tokio::test]
async fn the_outcome_and_the_items_are_there_together() {
    let fixture = Fixture::new().await;
    let (_, claim) = reserved_record(&fixture, 1).await;
    let actions = vec![payment(&fixture, "pay_1")];
    let record = fixture.store.commit_with(actions, &claim, &complete("done")).await.unwrap().unwrap();
    assert_eq!(record.state, State::Completed);
    assert_eq!(fixture.record(&key(1)).await, record);
    assert!(is_there(&fixture, "pay_1").await);

    let (_, claim) = reserved_record(&fixture, 2).await;
    let gone = fixture.store.commit_with(vec![payment(&fixture, "pay_2")], &claim, &release()).await.unwrap();
    assert_eq!((gone, fixture.read(&key(2)).await), (None, None));
    assert!(is_there(&fixture, "pay_2").await);
}

#[tokio::test]
async fn whatever_is_in_the_way_of_one_is_in_the_way_of_both() {
    let fixture = Fixture::new().await;
    let (_, claim) = reserved_record(&fixture, 1).await;
    fixture.store.commit_with(vec![payment(&fixture, "pay_1")], &claim, &complete("done")).await.unwrap();
    let late = fixture.store.commit_with(vec![payment(&fixture, "pay_2")], &claim, &complete("late")).await;
    assert!(matches!(late, Err(CommitError::Refused(_))), "{late:?}");
    assert!(!is_there(&fixture, "pay_2").await);

    let (record, claim) = reserved_record(&fixture, 2).await;
    let actions = vec![payment(&fixture, "pay_3"), payment(&fixture, "pay_1")];
    let twice = fixture.store.commit_with(actions, &claim, &complete("done")).await;
    assert!(matches!(twice, Err(CommitError::Condition { action: 1 })), "{twice:?}");
    assert!(!is_there(&fixture, "pay_3").await);
    assert_eq!(fixture.record(&key(2)).await, record);

    let nobody = Claim { attempt: 7, ..claim };
    let fenced = fixture.store.commit_with(Vec::new(), &nobody, &complete("done")).await;
    assert!(matches!(fenced, Err(CommitError::Refused(Refusal::Fenced))), "{fenced:?}");
}

#[tokio::test]
async fn a_heartbeat_in_between_is_decided_again_and_a_lost_answer_is_read_back() {
    let fixture = Fixture::new().await;
    let (record, claim) = reserved_record(&fixture, 1).await;
    // What it reads is the record as it was before the heartbeat.
    fixture.table.proxy.forget();
    fixture.read(&record.key).await;
    let before = fixture.table.proxy.seen("GetItem").pop().expect("it was read").1;
    assert_eq!(swap(&fixture.store, &record).await.unwrap(), Swapped::Done);
    fixture.table.proxy.next("GetItem", "\"r#", Fault::Stale(before), 1);
    let actions = vec![payment(&fixture, "pay_1")];
    fixture.store.commit_with(actions, &claim, &complete("done")).await.unwrap();
    assert_eq!(fixture.record(&key(1)).await.version, record.version + 2);

    for (number, fault) in [(2, Fault::CutAfter), (3, Fault::FailedAfter)] {
        let (_, claim) = reserved_record(&fixture, number).await;
        let id = format!("pay_{number}");
        fixture.table.proxy.next("TransactWriteItems", "", fault, 1);
        fixture.store.commit_with(vec![payment(&fixture, &id)], &claim, &complete("done")).await.unwrap();
        assert!(is_there(&fixture, &id).await);
    }
    let (record, claim) = reserved_record(&fixture, 4).await;
    fixture.table.proxy.next("TransactWriteItems", "", Fault::FailedBefore, 1);
    let lost = fixture.store.commit_with(vec![payment(&fixture, "pay_4")], &claim, &complete("done")).await;
    assert!(matches!(lost, Err(CommitError::Store(StoreError::Lost(_)))), "{lost:?}");
    assert_eq!((fixture.record(&key(4)).await, is_there(&fixture, "pay_4").await), (record, false));
}
