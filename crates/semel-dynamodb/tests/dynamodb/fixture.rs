//! A store behind the proxy, and what tests do with it.

use crate::proxy::Table;
use semel::{Created, Draft, Record, RecordKey, Store, StoreError, Swap, Swapped};
use semel_conformance::samples::next;
use semel_dynamodb::DynamoStore;

/// A store in a table of its own.
pub(crate) struct Fixture {
    pub(crate) table: Table,
    pub(crate) store: DynamoStore,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let table = Table::new().await;
        let store = table.open().await;
        // The format of keys is fixed by the first record.
        let warm = semel_conformance::samples::reserved(RecordKey::new("warm", "up", "key"));
        create(&store, warm).await.expect("the store takes a record");
        table.proxy.forget();
        Self { table, store }
    }

    /// Creates a record, and reads it.
    pub(crate) async fn insert(&self, draft: Draft) -> Record {
        let key = draft.key.clone();
        assert_eq!(create(&self.store, draft).await.expect("the store takes a record"), Created::Inserted);
        self.record(&key).await
    }

    pub(crate) async fn read(&self, key: &RecordKey) -> Option<Record> {
        let answer = self.store.read(vec![key.clone()]).await.expect("the store reads");
        answer.items.into_iter().next().flatten()
    }

    pub(crate) async fn record(&self, key: &RecordKey) -> Record {
        self.read(key).await.expect("the record is there")
    }

    /// How many requests of this operation named a record.
    pub(crate) fn writes(&self, operation: &str) -> usize {
        let is_of_record = |request: &serde_json::Value| request.to_string().contains("\"r#");
        self.table.proxy.seen(operation).iter().filter(|(request, _)| is_of_record(request)).count()
    }
}

pub(crate) async fn create(store: &DynamoStore, draft: Draft) -> Result<Created, StoreError> {
    store.create(vec![draft]).await.map(|answer| answer.items.into_iter().next().expect("an item"))
}

pub(crate) async fn swap(store: &DynamoStore, record: &Record) -> Result<Swapped, StoreError> {
    let swap = Swap { expected: record.expected(), next: Box::new(next(record)), history: None };
    store.swap(vec![swap]).await.map(|answer| answer.items.into_iter().next().expect("an item"))
}

pub(crate) async fn remove(store: &DynamoStore, record: &Record) -> Result<Swapped, StoreError> {
    let removed = store.remove(vec![record.expected()]).await;
    removed.map(|answer| answer.items.into_iter().next().expect("an item"))
}
