//! What a store should hold after what it answered: records and histories in plain vectors, and no time of its own.

use crate::client::Client;
use crate::samples::key;
use semel::{
    Body, Created, Draft, DueKind, Expected, Filter, HistoryLine, OperationId, Purged, Record, RecordKey,
    State, Swap, Swapped, Timestamp,
};

#[derive(Default)]
pub(super) struct Reference {
    held: Vec<Held>,
    /// Ids of what is no longer there.
    gone: Vec<OperationId>,
    now: Option<Timestamp>,
    creates: u64,
}

struct Held {
    record: Record,
    history: Vec<HistoryLine>,
    /// Which call created it: items of one call have no order among themselves.
    created_by: u64,
}

impl Reference {
    /// The time that the store returned.
    pub(super) fn told(&mut self, now: Timestamp) {
        assert!(self.now.is_none_or(|before| before <= now), "time went back from {:?} to {now:?}", self.now);
        self.now = Some(now);
    }

    pub(super) fn read(&self, key: &RecordKey) -> Option<&Record> {
        self.held.iter().map(|held| &held.record).find(|record| record.key == *key)
    }

    // Of several items of one record the store chooses the order, and at most one is done. So everything that it says is done has to
    // be possible, and everybody else has to have been told what was there before the call or is there after it.

    pub(super) fn created(&mut self, now: Timestamp, batch: &[Draft], answers: &[Created]) {
        assert_eq!(batch.len(), answers.len());
        self.told(now);
        self.creates += 1;
        for (draft, answer) in batch.iter().zip(answers) {
            if *answer == Created::Inserted {
                assert_eq!(self.read(&draft.key), None, "inserted over a record");
                let record = draft.clone().at(now);
                self.held.push(Held { record, history: vec![], created_by: self.creates });
            }
        }
        for (draft, answer) in batch.iter().zip(answers) {
            match answer {
                Created::Inserted => {}
                Created::Exists(found) => assert_eq!(Some(&**found), self.read(&draft.key)),
                other => panic!("no transaction holds it, and it is not damaged: {other:?}"),
            }
        }
    }

    pub(super) fn swapped(&mut self, now: Timestamp, batch: &[Swap], answers: &[Swapped]) {
        assert_eq!(batch.len(), answers.len());
        self.told(now);
        let expected: Vec<&Expected> = batch.iter().map(|swap| &swap.expected).collect();
        let before = self.before(&expected, answers);
        for (swap, answer) in batch.iter().zip(answers) {
            if *answer == Swapped::Done {
                let held = self.expected(&swap.expected).expect("swapped what was not expected");
                held.record = swap.next.clone().at(now);
                let version = held.record.version;
                let line = swap.history.clone().map(|entry| HistoryLine { at: now, version, entry });
                held.history.extend(line);
            }
        }
        self.refused(&before, &expected, answers);
    }

    pub(super) fn removed(&mut self, now: Timestamp, batch: &[Expected], answers: &[Swapped]) {
        assert_eq!(batch.len(), answers.len());
        self.told(now);
        let batch: Vec<&Expected> = batch.iter().collect();
        let before = self.before(&batch, answers);
        for (expected, answer) in batch.iter().zip(answers) {
            if *answer == Swapped::Done {
                self.expected(expected).expect("removed what was not expected");
                self.held.retain(|held| held.record.key != expected.key);
                self.gone.push(expected.operation_id);
            }
        }
        self.refused(&before, &batch, answers);
    }

    /// Answers were dropped that had ended by these moments: all that were over. A store may have had some of records that are gone.
    pub(super) fn dropped(&mut self, now: Timestamp, ends: &[Timestamp]) {
        self.told(now);
        assert!(ends.is_sorted() && ends.iter().all(|end| end.has_come(now)), "{ends:?} at {now:?}");
        let mut ends = ends.to_vec();
        for held in &mut self.held {
            let over = held.record.answer_ends().filter(|end| end.has_come(now));
            let response = held.record.response.as_mut().filter(|response| response.has_droppable());
            if let (Some(end), Some(response)) = (over, response) {
                let place = ends.iter().position(|told| *told == end).expect("it was over");
                ends.remove(place);
                response.headers.clear();
                if response.body.is_kept() {
                    response.body = Body::Dropped;
                }
            }
        }
    }

    /// These were removed: all whose time was over.
    pub(super) fn purged(&mut self, now: Timestamp, told: &[Purged]) {
        self.told(now);
        let over = |held: &Held| match held.record.due() {
            Some((DueKind::Purge, since)) if since.has_come(now) => Some((since, held.record.operation_id)),
            _ => None,
        };
        let (mut gone, kept): (Vec<_>, _) =
            std::mem::take(&mut self.held).into_iter().partition(|held| over(held).is_some());
        gone.sort_by_key(|held| over(held));
        self.held = kept;
        self.gone.extend(gone.iter().map(|held| held.record.operation_id));
        let expected: Vec<_> = gone
            .iter()
            .filter_map(|held| {
                Some(Purged { operation: held.record.key.operation.clone(), since: over(held)?.0 })
            })
            .collect();
        assert_eq!(told, expected, "at {now:?}");
    }

    /// What was there before the call; and whoever found what it expected gets it, or loses it to another item.
    fn before(&mut self, batch: &[&Expected], answers: &[Swapped]) -> Vec<Option<Record>> {
        for expected in batch {
            let of_this = batch.iter().zip(answers).filter(|(other, _)| other.key == expected.key);
            let done = of_this.filter(|(_, answer)| **answer == Swapped::Done).count();
            let possible = usize::from(self.expected(expected).is_some());
            assert!((possible..=1).contains(&done), "{done} items of one record done: {answers:?}");
        }
        batch.iter().map(|expected| self.read(&expected.key).cloned()).collect()
    }

    fn refused(&self, before: &[Option<Record>], batch: &[&Expected], answers: &[Swapped]) {
        for ((before, expected), answer) in before.iter().zip(batch).zip(answers) {
            let told = match answer {
                Swapped::Done => continue,
                Swapped::Changed(found) => Some(&**found),
                Swapped::Missing => None,
                other => panic!("no transaction holds it, and it is not damaged: {other:?}"),
            };
            let after = self.read(&expected.key);
            assert!(told == before.as_ref() || told == after, "told {told:?}, there is {after:?}");
        }
    }

    fn expected(&mut self, expected: &Expected) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.record.expected() == *expected)
    }

    /// Everything that the store holds, by every way of asking.
    pub(super) async fn compare(&mut self, client: &Client) {
        let keys: Vec<RecordKey> = (0..6).map(key).collect();
        let answer = client.store.read(keys.clone()).await.expect("the store reads");
        self.told(answer.now);
        let expected: Vec<Option<Record>> = keys.iter().map(|key| self.read(key).cloned()).collect();
        assert_eq!(answer.items, expected, "by key");

        let ids: Vec<OperationId> =
            self.held.iter().map(|held| held.record.operation_id).chain(self.gone.iter().copied()).collect();
        let answer = client.store.find(ids).await.expect("the store finds");
        self.told(answer.now);
        let there = self.held.iter().map(|held| Some(held.record.clone()));
        let expected: Vec<Option<Record>> = there.chain(self.gone.iter().map(|_| None)).collect();
        assert_eq!(answer.items, expected, "by operation id");

        for held in &self.held {
            assert_eq!(client.history(held.record.operation_id).await, held.history);
        }
        if let Some(id) = self.gone.last() {
            assert_eq!(client.history(*id).await, []);
        }
        self.compare_listings(client).await;
        for kind in DueKind::ALL {
            let answer = client.due(kind).await;
            self.told(answer.now);
            let mut expected: Vec<(Timestamp, OperationId, Record)> = self
                .held
                .iter()
                .filter_map(|held| {
                    let (waits_for, at) = held.record.due()?;
                    let due = waits_for == kind && at.has_come(answer.now);
                    due.then(|| (at, held.record.operation_id, without_body(&held.record)))
                })
                .collect();
            expected.sort_by_key(|(at, id, _)| (*at, *id));
            let expected: Vec<Record> = expected.into_iter().map(|(_, _, record)| record).collect();
            let found: Vec<Record> = answer.items.iter().map(without_body).collect();
            assert_eq!(found, expected, "{kind:?} at {:?}", answer.now);
        }
    }

    async fn compare_listings(&self, client: &Client) {
        let by_state = |state| Filter { state: Some(state), ..Filter::default() };
        let filters = [
            Filter::default(),
            by_state(State::InProgress),
            by_state(State::Unknown),
            Filter { dead_letter: Some(true), ..Filter::default() },
            Filter { tenant: Some("acme".into()), key: Some(key(1).key.to_string()), ..Filter::default() },
        ];
        for filter in filters {
            let listed = client.list(&filter, 3).await;
            let mut expected: Vec<&Held> = self
                .held
                .iter()
                .filter(|held| filter.state.is_none_or(|state| held.record.state == state))
                .filter(|held| filter.dead_letter.is_none_or(|dead| held.record.dead_letter == dead))
                .filter(|held| filter.key.as_ref().is_none_or(|key| *held.record.key.key == **key))
                .collect();
            expected.sort_by_key(|held| std::cmp::Reverse(held.created_by));
            let order = |record: &Record| {
                let held = expected.iter().find(|held| held.record.operation_id == record.operation_id);
                held.map(|held| held.created_by)
            };
            let places: Vec<_> = listed.iter().map(order).collect();
            let expected_places: Vec<_> = expected.iter().map(|held| Some(held.created_by)).collect();
            assert_eq!(places, expected_places, "the newest first, {filter:?}");
            for record in &listed {
                let held = expected.iter().find(|held| held.record.operation_id == record.operation_id);
                assert_eq!(held.map(|held| without_body(&held.record)), Some(without_body(record)));
            }
        }
    }
}

/// As it is listed. Whether a body that was kept is still there is not looked at for that.
fn without_body(record: &Record) -> Record {
    let mut record = record.clone();
    if let Some(kept) = &mut record.response {
        kept.headers.clear();
        if kept.body.is_kept() || kept.body == Body::Dropped {
            kept.body = Body::Omitted;
        }
    }
    record
}
