//! Sealed answers against an attacker who can write to the store's tables. Only a store's own tests can do that, so this is no rule of
//! the suite: they call it.

use crate::samples::{LONG, response};
use bytes::Bytes;
use semel::fingerprint::{Command, Recipe};
use semel::seal::{Keyring, Plain, SealingKey};
use semel::{
    BeginError, Body, Decision, Engine, EngineOptions, Incoming, Outcome, Policy, RecordKey, Stale, State,
    Store, StoreError, StoredResponse, Ticket,
};
use std::sync::Arc;

/// What is in every key, answer and checkpoint here, and must be in no file and no table.
pub const CANARY: &str = "canary-in-the-clear";

/// How a stored record is tampered with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tampering {
    /// Flips the last bit of the body.
    FlippedBit,
    /// Takes the last byte of the body off.
    CutOff,
    /// Puts the body of this record in its place.
    BodyOf(RecordKey),
    /// Writes these into the headers.
    Headers(&'static str),
    /// Makes it another status.
    Status(u16),
    /// Puts a plain body of this text in its place, `body_kind` and all.
    PlainBody(&'static str),
    /// Flips the last bit of the checkpoint.
    FlippedCheckpoint,
    /// Puts the checkpoint of this record in its place.
    CheckpointOf(RecordKey),
    /// Moves the end of the owner's lease to 1970. This is no attack; it saves waiting.
    LeaseOver,
}

/// Two keys, the first of which seals, and nothing plain is believed.
///
/// # Panics
/// Never: the keys are right.
#[must_use]
pub fn sealing_keys() -> Keyring {
    let key = |id, byte| SealingKey::new(id, &[byte; 32]).expect("a key");
    Keyring::new([key("2026-11", 1), key("2026-05", 2)]).expect("keys").plain(Plain::Refused)
}

fn answer() -> StoredResponse {
    StoredResponse {
        body: Body::Stored(Bytes::from(format!("{{\"body\":\"{CANARY}\"}}"))),
        ..with_location()
    }
}

fn with_location() -> StoredResponse {
    let mut answer = response("");
    answer.headers.push(("location".into(), Bytes::from(format!("/payments/{CANARY}"))));
    answer
}

/// The client's key is one of the things that are sealed.
fn key(number: u32) -> RecordKey {
    RecordKey::new("acme", "create_payment", format!("{CANARY}-{number:012}"))
}

pub(crate) struct Shop {
    engine: Engine,
    command: Command,
    policy: Arc<Policy>,
}

impl Shop {
    pub(crate) fn new(store: Arc<dyn Store>, keyring: Option<Keyring>) -> Self {
        let options = EngineOptions { keyring, ..EngineOptions::default() };
        let recipe = Recipe::builder().command("create_payment/1").build().expect("a recipe");
        let command = Command::new(Arc::new(recipe), None, &"10.00").expect("a command");
        let policy = Policy { lease: LONG * 3, stale: Stale::Resume, ..Policy::default() };
        Self { engine: Engine::with_options(store, options), command, policy: Arc::new(policy) }
    }

    async fn begin(&self, key: RecordKey) -> Result<Decision, BeginError> {
        let policy = Arc::clone(&self.policy);
        self.engine.begin(Incoming { key, subject: &self.command, policy }).await
    }

    async fn execute(&self, key: RecordKey) -> Ticket {
        match self.begin(key).await {
            Ok(Decision::Execute(ticket)) => ticket,
            other => panic!("it was to execute, and got {other:?}"),
        }
    }

    pub(crate) async fn completed(&self, number: u32) -> RecordKey {
        let ticket = self.execute(key(number)).await;
        let outcome = Outcome::Completed { response: Some(answer()), resource: None };
        ticket.finish(outcome).await.expect("the outcome is stored");
        match self.begin(key(number)).await {
            Ok(Decision::Replay(record)) => assert_eq!(record.response, Some(answer())),
            other => panic!("it was to be replayed, and got {other:?}"),
        }
        key(number)
    }

    /// An owner that left this at a recovery point, and died.
    async fn left_at_a_recovery_point(&self, number: u32) -> RecordKey {
        let mut ticket = self.execute(key(number)).await;
        ticket.advance("charged", Some(Bytes::from(CANARY))).await.expect("the recovery point is stored");
        let stored = self.stored(&key(number)).await;
        let (_, found) = self.engine.store().read(&stored).await.expect("the store answers");
        let record = found.expect("it is there");
        assert_eq!(self.engine.checkpoint_of(&record).expect("it opens").as_deref(), Some(CANARY.as_bytes()));
        // Without a farewell. The next sign of life would be due in an hour.
        std::mem::forget(ticket);
        key(number)
    }

    /// The key as the store has it.
    async fn stored(&self, key: &RecordKey) -> RecordKey {
        self.engine.stored_key(key).await.expect("the store tells its key format")
    }

    pub(crate) async fn is_damaged(&self, key: &RecordKey) -> bool {
        matches!(self.begin(key.clone()).await, Err(BeginError::Store(StoreError::Damaged(_))))
    }
}

/// Checks that a tampered answer or checkpoint is reported as damage, whatever was done to it, and that nothing executes
/// instead. An attacker can compute the checksum: `tamper` leaves a matching one.
///
/// # Panics
/// If something else is replayed, or executes.
pub async fn what_is_sealed_stands_no_tampering(
    store: Arc<dyn Store>,
    tamper: impl AsyncFn(&RecordKey, &Tampering),
) {
    let shop = Shop::new(store, Some(sealing_keys()));
    // An attacker sees client keys as they are stored.
    let tamper =
        async |key: &RecordKey, tampering: &Tampering| tamper(&shop.stored(key).await, tampering).await;
    let other = shop.stored(&shop.completed(0).await).await;
    let tamperings = [
        Tampering::FlippedBit,
        Tampering::CutOff,
        Tampering::BodyOf(other.clone()),
        Tampering::Headers("[[\"location\",\"/elsewhere\"]]"),
        Tampering::Headers("not even headers"),
        Tampering::Status(200),
        Tampering::PlainBody("somebody else's answer"),
    ];
    for (number, tampering) in (1..).zip(&tamperings) {
        let key = shop.completed(number).await;
        tamper(&key, tampering).await;
        assert!(shop.is_damaged(&key).await, "{tampering:?}");
    }
    let other = shop.left_at_a_recovery_point(100).await;
    let stored = shop.stored(&other).await;
    for (number, tampering) in (101..).zip([Tampering::FlippedCheckpoint, Tampering::CheckpointOf(stored)]) {
        let key = shop.left_at_a_recovery_point(number).await;
        tamper(&key, &tampering).await;
        tamper(&key, &Tampering::LeaseOver).await;
        assert!(shop.is_damaged(&key).await, "{tampering:?}");
        let (_, found) = shop.engine.store().read(&shop.stored(&key).await).await.expect("the store answers");
        let record = found.expect("it is there");
        assert_eq!((record.state, record.attempt), (State::InProgress, 1), "nobody took it over");
    }
    // The operation with the untouched checkpoint resumes.
    tamper(&other, &Tampering::LeaseOver).await;
    assert_eq!(shop.execute(other).await.attempt(), 2);
}
