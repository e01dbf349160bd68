//! Records to write, and where to write them.

use bytes::Bytes;
use semel::transition::{Act, Reservation, Windows, reserve};
use semel::{
    Body, Created, Draft, Fingerprint, OperationId, Owner, Policy, RecipeId, Record, RecordKey, Store,
    StoredResponse,
};
use semel_sqlite::SqliteStore;
use tempfile::TempDir;

pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("semel.db")
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path()).await.unwrap()
    }
}

pub(crate) fn key(name: &str) -> RecordKey {
    RecordKey::new("tenant", "create_payment", name)
}

pub(crate) fn draft(name: &str) -> Draft {
    draft_of(key(name))
}

pub(crate) fn draft_of(key: RecordKey) -> Draft {
    let reservation = Reservation {
        key,
        operation_id: OperationId::random(),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([9; 16]),
        owner: Owner::random(),
    };
    reserve(reservation, &Policy::default())
}

pub(crate) fn complete() -> Act {
    Act::Complete {
        response: Some(StoredResponse {
            status: 201,
            headers: vec![("content-type".into(), Bytes::from_static(b"application/json"))],
            body: Body::Stored(Bytes::from_static(b"{\"id\":\"pay_1\"}")),
            schema_version: None,
        }),
        resource: None,
        windows: Windows::from(&Policy::default()),
    }
}

pub(crate) async fn create(store: &SqliteStore, draft: Draft) -> Created {
    store.create(vec![draft]).await.unwrap().items.remove(0)
}

pub(crate) async fn read(store: &SqliteStore, name: &str) -> Option<Record> {
    store.read(vec![key(name)]).await.unwrap().items.remove(0)
}
