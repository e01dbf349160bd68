//! Windows: how long a final state is replayed, and what is left after that.

use super::{Change, Refusal, next_version, put};
use crate::record::{Record, State};
use crate::time::Timestamp;

/// How a record stands to its windows at a moment, whether or not the reaper has run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Standing {
    /// Within all windows, or without any: what is unfinished never expires.
    Alive,
    /// The body's retention is over.
    BodyOver,
    /// The window is over; the tombstone stands.
    Tombstone,
    /// The tombstone's time is over: as if never seen.
    Gone,
}

/// How `record` stands to its windows at `now`.
#[must_use]
pub fn standing(record: &Record, now: Timestamp) -> Standing {
    let come = |moment: Option<Timestamp>| moment.is_some_and(|moment| moment.has_come(now));
    let times = &record.times;
    match record.state {
        State::InProgress | State::Unknown => Standing::Alive,
        _ if come(times.purge) => Standing::Gone,
        State::Expired => Standing::Tombstone,
        _ if come(times.expires) => Standing::Tombstone,
        _ if come(times.body_expires) => Standing::BodyOver,
        _ => Standing::Alive,
    }
}

/// The state that a record is in at `now`. Where its window is over that is [`State::Expired`], whatever is written: a tombstone needs no
/// writing.
#[must_use]
pub fn state_at(record: &Record, now: Timestamp) -> State {
    match standing(record, now) {
        Standing::Alive | Standing::BodyOver => record.state,
        Standing::Tombstone | Standing::Gone => State::Expired,
    }
}

/// The reaper looks at the record. Answers are not its business: stores keep them apart from records, and drop them by their time alone.
///
/// # Errors
/// [`Refusal::NotDue`]: there is nothing to drop.
pub fn reap(record: &Record, now: Timestamp) -> Result<Change, Refusal> {
    match standing(record, now) {
        Standing::Gone => Ok(Change::Remove),
        Standing::Tombstone if record.checkpoint.is_some() => {
            let mut next = next_version(record);
            next.state = State::Expired;
            next.response = None;
            next.checkpoint = None;
            next.times.body_expires = None;
            Ok(put(next, None))
        }
        Standing::Alive | Standing::BodyOver | Standing::Tombstone => Err(Refusal::NotDue),
    }
}
