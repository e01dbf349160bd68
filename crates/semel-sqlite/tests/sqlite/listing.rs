//! Listing: every filter finds what it should, page by page.

use crate::fixture::{Place, create, draft_of};
use semel::{Filter, RecordKey, Store};
use semel_sqlite::SqliteStore;

async fn filled(place: &Place) -> SqliteStore {
    let store = place.open().await;
    let mut batch = Vec::new();
    for tenant in ["a", "b", "c"] {
        for operation in ["pay", "refund"] {
            for number in 0..5 {
                batch.push(draft_of(RecordKey::new(tenant, operation, format!("key-{number}"))));
            }
        }
    }
    store.create(batch).await.unwrap();
    store
}

async fn keys(store: &SqliteStore, filter: Filter) -> Vec<[String; 3]> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.list(filter.clone(), cursor, 4).await.unwrap();
        assert!(page.records.len() <= 4);
        found.extend(page.records.into_iter().map(|record| {
            [record.key.tenant, record.key.operation, record.key.key].map(|name| name.to_string())
        }));
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

#[tokio::test]
async fn each_combination_of_filters_lets_the_right_ones_through_newest_first() {
    let place = Place::new();
    let store = filled(&place).await;
    let all = keys(&store, Filter::default()).await;
    assert_eq!(all.len(), 30);
    assert_eq!(all[0], ["c", "refund", "key-4"]);
    for bits in 0..8 {
        let filter = Filter {
            tenant: (bits & 1 != 0).then(|| "b".into()),
            operation: (bits & 2 != 0).then(|| "refund".into()),
            key: (bits & 4 != 0).then(|| "key-3".into()),
            ..Filter::default()
        };
        let through = |[tenant, operation, key]: &&[String; 3]| {
            filter.tenant.as_ref().is_none_or(|asked| asked == tenant)
                && filter.operation.as_ref().is_none_or(|asked| asked == operation)
                && filter.key.as_ref().is_none_or(|asked| asked == key)
        };
        let expected: Vec<_> = all.iter().filter(through).cloned().collect();
        assert!(!expected.is_empty());
        assert_eq!(keys(&store, filter.clone()).await, expected, "{filter:?}");
    }
}

#[tokio::test]
async fn a_page_is_not_disturbed_by_newer_records() {
    let place = Place::new();
    let store = filled(&place).await;
    let first = store.list(Filter::default(), None, 10).await.unwrap();
    create(&store, draft_of(RecordKey::new("d", "pay", "key-new"))).await;
    let second = store.list(Filter::default(), first.next, 100).await.unwrap();
    assert_eq!((first.records.len(), second.records.len(), second.next), (10, 20, None));
}

#[tokio::test]
async fn a_limit_of_nothing_is_a_page_of_nothing_with_more_to_come() {
    let place = Place::new();
    let store = filled(&place).await;
    let page = store.list(Filter::default(), None, 0).await.unwrap();
    assert_eq!(page.records, vec![]);
    assert_eq!(store.list(Filter::default(), page.next, 100).await.unwrap().records.len(), 30);
}
