//! What is too large for one item.

use crate::fixture::{Fixture, remove, swap};
use bytes::Bytes;
use semel::{Actor, Body, Happening, HistoryEntry, State, Store, Swap, Swapped};
use semel_conformance::Hands as _;
use semel_conformance::samples::{LONG, in_state, key, next, reserved, response};
use std::time::Duration;

fn large(length: usize) -> Bytes {
    (0..length).map(|place| u8::try_from(place % 251).unwrap()).collect::<Vec<_>>().into()
}

#[tokio::test]
async fn answers_and_checkpoints_of_several_items_come_back_and_go() {
    let fixture = Fixture::new().await;
    let mut draft = reserved(key(1));
    draft.recovery_point = Some("charged".into());
    draft.checkpoint = Some(large(500_000));
    let record = fixture.insert(draft).await;
    assert_eq!(record.checkpoint, Some(large(500_000)));
    let listed = fixture.store.list(semel::Filter::default(), None, 10).await.unwrap().records;
    assert_eq!(listed[0].checkpoint, Some(large(500_000)), "a listing leaves out bodies, and nothing else");
    for length in [0, 120 * 1024, 400_000, 3_000_000] {
        let mut draft = in_state(State::Completed, key(2));
        draft.response = Some(semel::StoredResponse { body: Body::Stored(large(length)), ..response("") });
        let record = fixture.insert(draft.clone()).await;
        assert_eq!(record.response, draft.response, "{length} bytes");
        assert_eq!(remove(&fixture.store, &record).await.unwrap(), Swapped::Done);
        assert_eq!(fixture.read(&key(2)).await, None);
    }
    fixture.table.clock.forward(Duration::from_secs(25 * 60 * 60));
    assert_eq!(
        fixture.store.sweep().await.unwrap(),
        0,
        "nothing was left behind, and the checkpoint is needed"
    );
    assert_eq!(fixture.record(&key(1)).await.checkpoint, Some(large(500_000)));
}

#[tokio::test]
async fn parts_that_nothing_names_are_swept_after_a_day() {
    let fixture = Fixture::new().await;
    let record = fixture.insert(reserved(key(1))).await;
    assert_eq!(swap(&fixture.store, &record).await.unwrap(), Swapped::Done);
    let mut late = next(&record);
    late.checkpoint = Some(large(200_000));
    let lost = Swap { expected: record.expected(), next: Box::new(late), history: None };
    let lost = fixture.store.swap(vec![lost]).await.unwrap().items.remove(0);
    assert!(matches!(lost, Swapped::Changed(_)), "{lost:?}");
    fixture.table.clock.forward(LONG);
    assert_eq!(fixture.store.sweep().await.unwrap(), 0, "its write may still be on its way");
    fixture.table.clock.forward(LONG * 24);
    assert_eq!(fixture.store.sweep().await.unwrap(), 1);
    assert_eq!(fixture.store.sweep().await.unwrap(), 0);
}

#[tokio::test]
async fn a_long_history_is_folded_and_told_whole() {
    let fixture = Fixture::new().await;
    let mut record = fixture.insert(reserved(key(1))).await;
    let notes: Vec<String> = (0..60).map(|number| format!("{number} {}", "x".repeat(4_000))).collect();
    for note in &notes {
        let entry = HistoryEntry {
            happening: Happening::Remarked,
            actor: Actor::Operator("ada".into()),
            attempt: 1,
            note: Some(note.clone()),
        };
        let swap = Swap { expected: record.expected(), next: Box::new(next(&record)), history: Some(entry) };
        assert_eq!(fixture.store.swap(vec![swap]).await.unwrap().items, [Swapped::Done]);
        record.version += 1;
    }
    let told = fixture.store.history(record.operation_id).await.unwrap();
    let told: Vec<String> = told.into_iter().filter_map(|line| line.entry.note).collect();
    assert_eq!(told, notes);
    assert_eq!(remove(&fixture.store, &record).await.unwrap(), Swapped::Done);
    fixture.table.clock.forward(LONG * 25);
    assert_eq!(fixture.store.sweep().await.unwrap(), 0, "its history went with it");
}
