//! Indexes are hints, and pointers are repaired.

use crate::fixture::{Fixture, create, swap};
use crate::proxy::Fault;
use semel::{DueKind, DueQuery, State, Store, StoreError, Swap, Swapped, When};
use semel_conformance::Hands as _;
use semel_conformance::samples::{LONG, in_state, key, next, reserved_for};
use std::time::Duration;

fn leases() -> DueQuery {
    DueQuery { kind: DueKind::Lease, after: None, limit: 2_000 }
}

#[tokio::test]
async fn what_an_index_does_not_say_yet_is_found_later() {
    let fixture = Fixture::new().await;
    fixture.insert(reserved_for(key(1), Duration::ZERO)).await;
    fixture.table.proxy.next("Query", "\"due\"", Fault::NothingYet, 8);
    assert!(fixture.store.due(leases()).await.unwrap().items.is_empty());
    assert_eq!(fixture.store.due(leases()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn what_an_index_still_says_is_read_again_before_anything_is_decided() {
    let fixture = Fixture::new().await;
    // One is taken up again, the other gets a later moment.
    let (retried, moved) = (key(1), key(2));
    for key in [&retried, &moved] {
        let mut draft = in_state(State::FailedRetryable, key.clone());
        (draft.times.expires, draft.times.purge) = (Some(When::NOW), Some(When::NOW));
        fixture.insert(draft).await;
    }
    // What the index says of them, which is what it will still say later.
    fixture.table.proxy.forget();
    let query = DueQuery { kind: DueKind::Purge, after: None, limit: 10 };
    assert_eq!(fixture.store.due(query).await.unwrap().items.len(), 2);
    let said = fixture.table.proxy.seen("Query");
    let record = fixture.record(&retried).await;
    let mut again = next(&record);
    again.state = State::InProgress;
    (again.times.expires, again.times.purge, again.times.lease) = (None, None, When::In(LONG));
    let taken = Swap { expected: record.expected(), next: Box::new(again), history: None };
    let record = fixture.record(&moved).await;
    let mut later = next(&record);
    later.times.purge = Some(When::In(LONG));
    let shifted = Swap { expected: record.expected(), next: Box::new(later), history: None };
    let swapped = fixture.store.swap(vec![taken, shifted]).await.unwrap().items;
    assert_eq!(swapped, [Swapped::Done, Swapped::Done]);

    // Once for each of the two that ask it now.
    for (request, answer) in &said {
        let partition = request["ExpressionAttributeValues"][":p"]["S"].as_str().unwrap();
        fixture.table.proxy.next("Query", &format!("{partition:?}"), Fault::Stale(answer.clone()), 2);
    }
    assert!(fixture.store.due(query).await.unwrap().items.is_empty());
    assert!(fixture.store.purge(10).await.unwrap().items.is_empty());
    assert_eq!(fixture.record(&retried).await.state, State::InProgress);
    assert!(fixture.read(&moved).await.is_some());
}

#[tokio::test]
async fn a_record_without_a_pointer_gets_one_when_its_lease_is_over() {
    let fixture = Fixture::new().await;
    let draft = reserved_for(key(1), LONG);
    let id = draft.operation_id;
    fixture.table.proxy.next("BatchWriteItem", "\"o#", Fault::Refused("ThrottlingException"), 1);
    let lost = create(&fixture.store, draft).await;
    assert!(
        matches!(lost, Err(StoreError::Lost(_))),
        "nobody executes before the pointer is there: {lost:?}"
    );
    assert_eq!(fixture.store.find(vec![id]).await.unwrap().items, [None]);
    fixture.table.clock.forward(LONG * 2);
    assert_eq!(fixture.store.due(leases()).await.unwrap().items.len(), 2, "and the one of the fixture");
    let found = fixture.store.find(vec![id]).await.unwrap().items.remove(0);
    assert_eq!(found.map(|record| record.key), Some(key(1)));
    // Or when its owner reads back, which goes on then.
    let draft = reserved_for(key(2), LONG);
    let id = draft.operation_id;
    fixture.table.proxy.next("BatchWriteItem", "\"o#", Fault::FailedBefore, 1);
    let lost = create(&fixture.store, draft).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert!(fixture.read(&key(2)).await.is_some());
    let found = fixture.store.find(vec![id]).await.unwrap().items.remove(0);
    assert_eq!(found.map(|record| record.key), Some(key(2)));
}

#[tokio::test]
async fn a_thousand_that_are_due_at_once_are_all_found_in_order() {
    let fixture = Fixture::new().await;
    let drafts: Vec<_> = (0..1_000).map(|number| reserved_for(key(number), Duration::ZERO)).collect();
    for drafts in drafts.chunks(250) {
        fixture.store.create(drafts.to_vec()).await.unwrap();
    }
    let all = fixture.store.due(leases()).await.unwrap().items;
    assert_eq!(all.len(), 1_000);
    let places: Vec<_> = all.iter().map(|record| (record.due().unwrap().1, record.operation_id)).collect();
    assert!(places.is_sorted());
    let (mut paged, mut after) = (0, None);
    loop {
        let page = fixture.store.due(DueQuery { after, limit: 150, ..leases() }).await.unwrap().items;
        let Some(last) = page.last() else { break };
        after = last.due().map(|(_, at)| (at, last.operation_id));
        paged += page.len();
    }
    assert_eq!(paged, 1_000);
}

#[tokio::test]
async fn a_purge_goes_on_around_a_record_that_was_written_meanwhile() {
    let fixture = Fixture::new().await;
    for number in 0..3 {
        let mut draft = in_state(State::Completed, key(number));
        (draft.times.expires, draft.times.purge) = (Some(When::NOW), Some(When::NOW));
        fixture.insert(draft).await;
    }
    // What a purge read of it is no longer so: the item as it was, and the table as it is.
    fixture.table.proxy.forget();
    let query = DueQuery { kind: DueKind::Purge, after: None, limit: 10 };
    fixture.store.due(query).await.unwrap();
    let read = fixture.table.proxy.seen("BatchGetItem").remove(0).1;
    assert_eq!(swap(&fixture.store, &fixture.record(&key(1)).await).await.unwrap(), Swapped::Done);
    fixture.table.proxy.next("BatchGetItem", "\"r#", Fault::Stale(read), 1);
    assert_eq!(fixture.store.purge(10).await.unwrap().items.len(), 2);
    assert!(fixture.read(&key(1)).await.is_some());
}
