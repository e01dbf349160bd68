//! What may replace what, on a real Redis.

use super::*;
use crate::entry::{self, Kind};
use crate::secret::Secret;
use semel::transition::{Reservation, reserve};
use semel::{Fingerprint, OperationId, Owner, Policy, RecipeId, Record, RecordKey, Timestamp};
use semel_testing::servers::Server;

const LASTS: Duration = Duration::from_secs(60);

struct Redis {
    connection: Connection,
    secret: Secret,
    name: Vec<u8>,
}

impl Redis {
    async fn new() -> Self {
        let url = Server::Redis.url().parse().unwrap();
        let secret = Secret::new(OperationId::random().as_bytes());
        let name = secret.name(&key());
        Self { connection: Connection::connect(&url, None, LASTS).await.unwrap(), secret, name }
    }

    fn value(&self, kind: Kind, operation: u128, version: u64, observed: i64) -> Vec<u8> {
        let at = Timestamp::from_millis(observed);
        entry::write(&self.secret, &self.name, kind, &record(operation, version), at)
    }

    /// Whether it is there afterwards.
    async fn put(&self, value: &[u8], always: bool) -> bool {
        let put = Put { name: self.name.clone(), value: value.to_vec(), lasts: LASTS, always };
        self.connection.clone().write(&[put]).await.unwrap();
        self.connection.clone().read(std::slice::from_ref(&self.name)).await.unwrap()[0].as_deref()
            == Some(value)
    }

    async fn fill(&self, value: &[u8]) -> bool {
        self.put(value, false).await
    }
}

fn key() -> RecordKey {
    RecordKey::new("acme", "create_payment", "key")
}

fn record(operation: u128, version: u64) -> Record {
    let reservation = Reservation {
        key: key(),
        operation_id: OperationId::from_u128(operation),
        fingerprint: Fingerprint([1; 32]),
        recipe: RecipeId([2; 16]),
        owner: Owner::from_u128(3),
    };
    let mut draft = reserve(reservation, &Policy::default());
    draft.version = version;
    draft.at(Timestamp::from_millis(0))
}

#[tokio::test]
async fn nothing_but_a_marker_replaces_a_marker() {
    let redis = Redis::new().await;
    assert!(redis.put(&entry::marker(OperationId::from_u128(1), 2), true).await);
    for (operation, version) in [(1, 1), (1, 2), (1, 3), (2, 9)] {
        assert!(!redis.fill(&redis.value(Kind::Entry, operation, version, 0)).await);
        assert!(!redis.fill(&redis.value(Kind::Guard, operation, version, 0)).await);
    }
    assert!(redis.put(&entry::marker(OperationId::from_u128(1), 3), true).await);
}

#[tokio::test]
async fn a_late_write_replaces_nothing_newer_and_no_other_operation() {
    let redis = Redis::new().await;
    let guard = redis.value(Kind::Guard, 1, 1, 0);
    assert!(redis.fill(&guard).await);
    let later_look = redis.value(Kind::Guard, 1, 1, 1_000);
    assert!(redis.fill(&later_look).await, "a guard is prolonged");
    assert!(!redis.fill(&redis.value(Kind::Entry, 2, 9, 0)).await, "another operation");
    // 255 and 256 differ in two bytes, in opposite directions.
    let entry = redis.value(Kind::Entry, 1, 256, 0);
    assert!(redis.fill(&entry).await, "the outcome");
    for older in [guard, redis.value(Kind::Guard, 1, 255, 0), redis.value(Kind::Entry, 1, 255, 0)] {
        assert!(!redis.fill(&older).await);
    }
    assert!(!redis.fill(&redis.value(Kind::Entry, 1, 256, 1_000)).await, "it is there already");
    assert!(redis.fill(&redis.value(Kind::Entry, 1, 257, 0)).await, "sealed by another key since");
    assert!(redis.put(&entry::marker(OperationId::from_u128(1), 258), true).await);
}

#[tokio::test]
async fn what_strangers_wrote_is_in_nobodys_way() {
    let redis = Redis::new().await;
    assert!(redis.put(b"what a stranger wrote", true).await);
    assert!(redis.fill(&redis.value(Kind::Entry, 1, 1, 0)).await);
    // Of another type: it is not read, nothing is written, and Redis goes on being used.
    let mut connection = redis.connection.clone();
    let mut command = redis::cmd("DEL");
    connection.ask::<redis::Value>(command.arg(&redis.name)).await.unwrap();
    let mut command = redis::cmd("LPUSH");
    connection.ask::<redis::Value>(command.arg(&redis.name).arg("1")).await.unwrap();
    assert!(!redis.fill(&redis.value(Kind::Entry, 1, 1, 0)).await);
}
