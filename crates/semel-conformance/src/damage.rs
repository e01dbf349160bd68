//! Damaged records do not block others. Only a store's own tests can damage one, so this is no rule of the suite: they call it.

use crate::samples::{LONG, in_state, key, next, reserved};
use crate::sealing::{Shop, Tampering};
use semel::{
    Created, Draft, DueKind, DueQuery, Filter, Record, RecordKey, State, Store, Swap, Swapped, When,
};
use std::sync::Arc;
use std::time::Duration;

const RECORDS: u32 = 12;
/// The first of all, three in a row, and the last.
const DAMAGED: [u32; 5] = [0, 4, 5, 6, 11];

/// Checks that what is due behind damaged records is found all the same, in pages of any length. `spoil` makes the record of a key one that cannot be read.
pub async fn what_is_due_is_found_behind_damaged_records(store: &dyn Store, spoil: impl AsyncFn(&RecordKey)) {
    let sound = with_damaged_ones(store, spoil).await;
    for limit in [1, 2, 3, sound.len(), 100] {
        let (mut met, mut after) = (Vec::new(), None);
        loop {
            let query = DueQuery { kind: DueKind::Lease, after, limit };
            let page = store.due(query).await.expect("the store tells what is due").items;
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit, "no more than was asked for");
            after = last.due().map(|(_, at)| (at, last.operation_id));
            met.extend(page.into_iter().map(|record| record.key));
        }
        met.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!(met, sound, "in pages of {limit}");
    }
}

/// Checks that a record is purged only if all of its columns agree that its time is over, and that records that stay do not block others.
/// For stores that keep what a record waits for in columns of their own: `spoil` sets columns of the record of a key, given as SQL.
pub async fn only_what_is_over_in_every_respect_is_purged(
    store: &dyn Store,
    spoil: impl AsyncFn(&RecordKey, &str),
) {
    let ended = |number, purge| {
        let mut draft = in_state(State::Completed, key(number));
        draft.times.purge = Some(purge);
        draft
    };
    let drafts = [reserved(key(0)), ended(1, When::In(LONG)), ended(2, When::NOW), ended(3, When::NOW)];
    let keys = drafts.each_ref().map(|draft| draft.key.clone());
    store.create(drafts.into()).await.expect("the store takes records");
    spoil(&keys[0], "due_kind = 'purge', due_at = 1").await;
    spoil(&keys[1], "due_kind = 'purge', due_at = 2").await;
    spoil(&keys[2], "state = 'unknown', due_at = 3").await;
    let purged = store.purge(1).await.expect("the store purges").items;
    assert_eq!(purged.len(), 1, "one that is over, behind three that only seem to be");
    assert!(store.purge(10).await.expect("the store purges").items.is_empty());
    let present = async |key: &RecordKey| match store.read(vec![key.clone()]).await {
        Ok(answer) => answer.items[0].is_some(),
        Err(_damaged) => true,
    };
    let mut stayed = Vec::new();
    for key in &keys {
        stayed.push(present(key).await);
    }
    assert_eq!(stayed, [true, true, true, false]);
}

/// Checks that a listing shows the records around damaged ones and says how many these are, in pages of any length. `spoil` as above.
pub async fn listings_pass_over_damaged_records(store: &dyn Store, spoil: impl AsyncFn(&RecordKey)) {
    let mut sound = with_damaged_ones(store, spoil).await;
    sound.reverse();
    for limit in [1, 2, 3, 100] {
        let (mut met, mut damaged, mut from) = (Vec::new(), 0, None);
        loop {
            let page = store.list(Filter::default(), from, limit).await.expect("the store lists the others");
            assert!(page.records.len() + page.damaged <= limit, "no more than was asked for");
            met.extend(page.records.into_iter().map(|record| record.key));
            damaged += page.damaged;
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(met, sound, "newest first, in pages of {limit}");
        assert_eq!(damaged, DAMAGED.len(), "in pages of {limit}");
    }
}

/// Checks that a damaged record among those of a write is the outcome of the item that met it, and that the others of the batch are
/// done as ever. `spoil` as above.
pub async fn writes_go_on_around_a_damaged_record(store: &dyn Store, spoil: impl AsyncFn(&RecordKey)) {
    let [damaged, known] = [0, 1].map(|number| reserved(key(number)));
    let [new, last] = [2, 3].map(|number| reserved(key(number)));
    let now = store.create(vec![damaged.clone(), known.clone()]).await.expect("the store takes records").now;
    spoil(&damaged.key).await;
    let again = |draft: &Draft| reserved(draft.key.clone());
    let batch = vec![new.clone(), again(&damaged), again(&known), last.clone()];
    let created = store.create(batch).await.expect("the store takes the others");
    let [Created::Inserted, Created::Damaged(why), Created::Exists(found), Created::Inserted] =
        &created.items[..]
    else {
        panic!("a create: {:?}", created.items)
    };
    assert_eq!(found.operation_id, known.operation_id);
    assert!(!why.contains(&*damaged.key.key), "keys are not told: {why}");

    // Not what is there, by its version: it has to be told what is.
    let mistaken = next(&damaged.at(now)).at(now);
    let swap =
        |record: &Record| Swap { expected: record.expected(), next: Box::new(next(record)), history: None };
    let known = known.at(now);
    let swapped = store.swap(vec![swap(&mistaken), swap(&known)]).await.expect("the store swaps the other");
    assert!(matches!(&swapped.items[..], [Swapped::Damaged(_), Swapped::Done]), "{:?}", swapped.items);
    let new = new.at(created.now);
    let batch = vec![mistaken.expected(), new.expected()];
    let removed = store.remove(batch).await.expect("the store removes the other");
    assert!(matches!(&removed.items[..], [Swapped::Damaged(_), Swapped::Done]), "{:?}", removed.items);

    let keys = [&known.key, &new.key, &last.key].map(Clone::clone).to_vec();
    let left = store.read(keys).await.expect("the store reads the others").items;
    let left: Vec<Option<u64>> = left.into_iter().map(|record| Some(record?.version)).collect();
    assert_eq!(left, [Some(known.version + 1), None, Some(last.version)]);
}

/// Makes records that are due, some of them damaged; the keys of the others, oldest first.
async fn with_damaged_ones(store: &dyn Store, spoil: impl AsyncFn(&RecordKey)) -> Vec<RecordKey> {
    for number in 0..RECORDS {
        let mut draft = reserved(key(number));
        draft.times.lease = When::In(Duration::ZERO);
        // One after the other, so that they come in this order.
        store.create(vec![draft]).await.expect("the store takes a record");
    }
    for number in DAMAGED {
        spoil(&key(number)).await;
    }
    (0..RECORDS).filter(|number| !DAMAGED.contains(number)).map(key).collect()
}

/// Checks that a stored answer which is not sealed, and is no longer what was written, is damage: never replayed, and nothing executes
/// instead. `tamper` leaves the sum as it was, as a disk does that loses a bit.
///
/// # Panics
/// If it is replayed, or executes.
pub async fn an_answer_that_changed_by_accident_is_damage(
    store: Arc<dyn Store>,
    tamper: impl AsyncFn(&RecordKey, &Tampering),
) {
    let shop = Shop::new(store, None);
    let accidents = [
        Tampering::FlippedBit,
        Tampering::CutOff,
        Tampering::PlainBody("somebody else's answer"),
        Tampering::Headers("[[\"location\",\"/elsewhere\"]]"),
        Tampering::Headers("not even headers"),
        Tampering::Status(200),
    ];
    for (number, accident) in (0..).zip(&accidents) {
        let key = shop.completed(number).await;
        tamper(&key, accident).await;
        assert!(shop.is_damaged(&key).await, "{accident:?}");
    }
}
