//! What the judgement is told of writes over answers that were tampered with, and of clocks that are accepted.

use super::*;
use crate::lock::locked;
use crate::machine::Machine;
use bytes::Bytes;
use semel::clock::{ClockRequest, Terms, Turn};
use semel::transition::{Act, Change, Claim, Reservation, Windows, act, remark, reserve, rewrite};
use semel::{
    Actor, Body, Fingerprint, Now, OperationId, Owner, Policy, RecipeId, Record, RecordKey, Store as _,
    StoredResponse, Swap, Swapped, Timestamp,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What it is told: of each write, whether what was replaced is the answer that was written first, and whether damage is carried on.
#[derive(Default)]
struct Heard {
    wrote: Mutex<Vec<(bool, bool)>>,
    accepted: Mutex<Vec<(i64, Timestamp)>>,
}

impl Audit for Heard {
    fn wrote(&self, _: usize, write: &Write<'_>, _: Now) {
        let before = write.before.and_then(|before| before.response.clone());
        locked(&self.wrote).push((before == Some(sealed()), write.carries_damage));
    }

    fn took_back(&self, _: &RecordKey, _: Option<&Record>, _: bool) {}

    fn found(&self, _: Owner, _: &Record, _: Now) {}

    fn overtaken(&self) {}

    fn turned(&self, _: usize, _: Turn) {}

    fn judged(&self, _: usize, _: Now, _: i64) {}

    fn accepted(&self, off: i64, earliest: Timestamp) {
        locked(&self.accepted).push((off, earliest));
    }
}

fn sealed() -> StoredResponse {
    let body = Body::Sealed(Bytes::from_static(b"sealed"));
    StoredResponse { status: 201, headers: Vec::new(), body, schema_version: None }
}

fn put(record: &Record, change: Change) -> Swap {
    let Change::Put { next, history } = change else { panic!("nothing is removed here") };
    Swap { expected: record.expected(), next, history }
}

fn remarked(record: &Record) -> Swap {
    put(record, remark(record, Actor::Webhook("provider".into()), None))
}

struct Scene {
    heard: Arc<Heard>,
    disk: Disk,
    store: SimulatedStore,
    machine: Machine,
    key: RecordKey,
}

impl Scene {
    fn new() -> Self {
        let (heard, machine) = (Arc::new(Heard::default()), Machine::by_hand());
        let disk = Disk::audited(machine.clone(), Terms::default(), heard.clone());
        let store = SimulatedStore::open(&disk, 1);
        Self { heard, disk, store, machine, key: RecordKey::new("tenant-1", "charge", "key") }
    }

    async fn swap(&self, swap: Swap) {
        let swapped = self.store.swap(vec![swap]).await.expect("a store without faults");
        assert_eq!(swapped.items, [Swapped::Done]);
    }

    fn record(&self) -> Record {
        self.disk.contents().record(&self.key).cloned().expect("it is there")
    }

    async fn complete(&self) {
        let policy = Policy::default();
        let reservation = Reservation {
            key: self.key.clone(),
            operation_id: OperationId::from_u128(7),
            fingerprint: Fingerprint([1; 32]),
            recipe: RecipeId([2; 16]),
            owner: Owner::from_u128(1),
        };
        self.store.create(vec![reserve(reservation, &policy)]).await.expect("a store without faults");
        let (record, windows) = (self.record(), Windows::from(&policy));
        let complete = Act::Complete { response: Some(sealed()), resource: None, windows };
        let completed = act(&record, &Claim::of(&record), &complete).expect("its owner completes it");
        self.swap(put(&record, completed)).await;
    }

    fn tamper(&self) -> usize {
        self.disk.contents().tamper(|_| 0).len()
    }

    fn is_whole(&self) -> bool {
        self.disk.contents().is_whole(&self.key)
    }

    /// What was told of the last write.
    fn last(&self) -> (bool, bool) {
        *locked(&self.heard.wrote).last().expect("something was written")
    }
}

#[tokio::test]
async fn a_write_by_who_read_before_the_tampering_replaces_what_was_read_and_makes_it_whole() {
    let scene = Scene::new();
    scene.complete().await;
    let remark = remarked(&scene.record());
    assert_eq!((scene.tamper(), scene.is_whole()), (1, false));
    scene.swap(remark).await;
    assert_eq!((scene.last(), scene.is_whole()), ((true, false), true));
    assert_eq!(scene.record().response, Some(sealed()));
    assert_eq!(scene.tamper(), 1, "it can be tampered with again");
}

#[tokio::test]
async fn a_write_by_who_read_after_the_tampering_carries_it_on() {
    let scene = Scene::new();
    scene.complete().await;
    scene.tamper();
    scene.swap(remarked(&scene.record())).await;
    assert_eq!((scene.last(), scene.is_whole()), ((false, true), false));
    assert_eq!(scene.tamper(), 0, "twice may be what was written");
}

#[tokio::test]
async fn a_write_of_another_answer_replaces_what_is_there() {
    let scene = Scene::new();
    scene.complete().await;
    scene.tamper();
    let record = scene.record();
    let other = StoredResponse { body: Body::Sealed(Bytes::from_static(b"by another key")), ..sealed() };
    scene.swap(put(&record, rewrite(&record, Some(other), None))).await;
    assert_eq!((scene.last(), scene.is_whole()), ((false, false), true));
}

#[tokio::test]
async fn an_acceptance_is_told_with_how_wrong_the_clock_is_and_only_if_it_changes_something() {
    let scene = Scene::new();
    let accept = || async { scene.store.clock(ClockRequest::Accept).await.expect("a store without faults") };
    accept().await;
    assert_eq!(*locked(&scene.heard.accepted), [], "nothing was held");
    scene.machine.step(7_200_000);
    scene.machine.forward(Duration::from_secs(1));
    let report = accept().await;
    assert_eq!(*locked(&scene.heard.accepted), [(7_200_000, report.earliest)]);
    assert_eq!(report.earliest.as_millis(), scene.machine.true_millis() + 7_200_000);
}
