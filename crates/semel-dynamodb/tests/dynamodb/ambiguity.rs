//! Answers that are lost, and refusals.

use crate::fixture::{Fixture, create, remove, swap};
use crate::proxy::Fault;
use semel::{Created, Store, StoreError, Swapped};
use semel_conformance::samples::{key, reserved};
use std::sync::Arc;
use tokio::sync::Notify;

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_found_by_its_write_id() {
    let fixture = Fixture::new().await;
    for (number, fault) in (0..).zip([Fault::CutAfter, Fault::FailedAfter]) {
        let draft = reserved(key(number));
        fixture.table.proxy.next("PutItem", "\"r#", fault.clone(), 1);
        assert_eq!(create(&fixture.store, draft.clone()).await.unwrap(), Created::Inserted);
        let found = fixture.store.find(vec![draft.operation_id]).await.unwrap().items.remove(0);
        let record = found.expect("its pointer is there too");
        fixture.table.proxy.next("UpdateItem", "\"r#", fault, 1);
        assert_eq!(swap(&fixture.store, &record).await.unwrap(), Swapped::Done);
        assert_eq!(fixture.record(&record.key).await.version, record.version + 1);
    }
    // Those that were cut are not among what the proxy answered.
    assert_eq!(
        (fixture.writes("PutItem"), fixture.writes("UpdateItem")),
        (1, 1),
        "none was sent a second time"
    );
}

#[tokio::test]
async fn a_write_that_was_not_done_and_may_still_be_is_lost() {
    let fixture = Fixture::new().await;
    fixture.table.proxy.next("PutItem", "\"r#", Fault::FailedBefore, 1);
    let lost = create(&fixture.store, reserved(key(1))).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert_eq!(fixture.read(&key(1)).await, None);
    let record = fixture.insert(reserved(key(2))).await;
    fixture.table.proxy.next("UpdateItem", "\"r#", Fault::FailedBefore, 1);
    let lost = swap(&fixture.store, &record).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    fixture.table.proxy.next("DeleteItem", "\"r#", Fault::CutAfter, 1);
    let lost = remove(&fixture.store, &record).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "gone, but by whom? {lost:?}");
}

#[tokio::test]
async fn a_refused_write_was_not_done_and_is_not_sent_again() {
    let fixture = Fixture::new().await;
    let record = fixture.insert(reserved(key(1))).await;
    fixture.table.proxy.forget();
    for code in [
        "ProvisionedThroughputExceededException",
        "ThrottlingException",
        "RequestLimitExceeded",
        "ReplicatedWriteConflictException",
        "AccessDeniedException",
    ] {
        fixture.table.proxy.next("PutItem", "\"r#", Fault::Refused(code), 1);
        fixture.table.proxy.next("UpdateItem", "\"r#", Fault::Refused(code), 1);
        fixture.table.proxy.next("DeleteItem", "\"r#", Fault::Refused(code), 1);
        let refused = [
            create(&fixture.store, reserved(key(2))).await.map(drop),
            swap(&fixture.store, &record).await.map(drop),
            remove(&fixture.store, &record).await.map(drop),
        ];
        for refused in refused {
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{code}: {refused:?}");
        }
    }
    assert_eq!(fixture.writes("PutItem") + fixture.writes("UpdateItem") + fixture.writes("DeleteItem"), 15);
    assert_eq!(fixture.read(&key(2)).await, None);
    assert_eq!(fixture.record(&key(1)).await, record);
}

#[tokio::test]
async fn a_batch_of_which_a_part_was_done_is_lost() {
    let fixture = Fixture::new().await;
    let (one, two) = (reserved(key(1)), reserved(key(2)));
    fixture.table.proxy.next("PutItem", "key-000000000002", Fault::Refused("ThrottlingException"), 1);
    let lost = fixture.store.create(vec![one.clone(), two.clone()]).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert!(fixture.read(&one.key).await.is_some() && fixture.read(&two.key).await.is_none());
}

#[tokio::test]
async fn a_request_that_arrives_twice_is_done_once_and_told_so() {
    let fixture = Fixture::new().await;
    fixture.table.proxy.next("PutItem", "\"r#", Fault::Twice, 1);
    assert_eq!(create(&fixture.store, reserved(key(1))).await.unwrap(), Created::Inserted);
    let record = fixture.record(&key(1)).await;
    fixture.table.proxy.next("UpdateItem", "\"r#", Fault::Twice, 1);
    assert_eq!(swap(&fixture.store, &record).await.unwrap(), Swapped::Done);
    assert_eq!(fixture.record(&key(1)).await.version, record.version + 1);
    // Somebody else's write of the same version is not ours.
    assert!(matches!(swap(&fixture.store, &record).await.unwrap(), Swapped::Changed(_)));
    let other = create(&fixture.store, reserved(key(1))).await.unwrap();
    assert!(matches!(other, Created::Exists(_)), "{other:?}");
}

#[tokio::test]
async fn a_request_that_arrives_late_changes_nothing_that_came_before_it() {
    let fixture = Fixture::new().await;
    let (arrives, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let late = || Fault::Late(Arc::clone(&arrives), Arc::clone(&arrived));
    fixture.table.proxy.next("PutItem", "\"r#", late(), 1);
    let lost = create(&fixture.store, reserved(key(1))).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "it may come yet: {lost:?}");
    let record = fixture.insert(reserved(key(1))).await;
    arrives.notify_one();
    arrived.notified().await;
    assert_eq!(fixture.record(&key(1)).await, record);

    fixture.table.proxy.next("UpdateItem", "\"r#", late(), 1);
    let lost = swap(&fixture.store, &record).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "it may come yet: {lost:?}");
    assert_eq!(swap(&fixture.store, &record).await.unwrap(), Swapped::Done);
    let after = fixture.record(&key(1)).await;
    arrives.notify_one();
    arrived.notified().await;
    assert_eq!(fixture.record(&key(1)).await, after);
}

#[tokio::test]
async fn whoever_lost_the_answer_to_a_race_that_another_won_is_told_what_is_there() {
    let fixture = Fixture::new().await;
    let record = fixture.insert(reserved(key(1))).await;
    assert_eq!(swap(&fixture.store, &record).await.unwrap(), Swapped::Done);
    fixture.table.proxy.next("UpdateItem", "\"r#", Fault::FailedAfter, 1);
    assert!(matches!(swap(&fixture.store, &record).await.unwrap(), Swapped::Changed(_)));
    fixture.table.proxy.next("PutItem", "\"r#", Fault::FailedAfter, 1);
    let lost = create(&fixture.store, reserved(key(1))).await.unwrap();
    assert!(matches!(lost, Created::Exists(_)), "{lost:?}");
}
