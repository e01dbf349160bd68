//! Whether a value from Redis answers a request. Decides and does nothing.

use crate::counts::Refused;
use crate::entry::{self, Kind, Unreadable};
use crate::recent_time::Estimate;
use crate::secret::Secret;
use bytes::Bytes;
use semel::{Draft, OperationId, Record, State, Timestamp};
use std::time::Duration;

/// A value is not used in the last second of its window, nor a guard in the last second of the lease: the store is asked, whose clock alone
/// says to the millisecond what is over.
pub(crate) const MARGIN: Duration = Duration::from_secs(1);

/// How long a guard counts, from the moment at which the store said that the operation is in progress.
pub(crate) const GUARD: Duration = Duration::from_secs(2);

/// What a value is judged by.
pub(crate) struct Judge<'a, L> {
    pub(crate) secret: &'a Secret,
    pub(crate) time: Option<Estimate>,
    pub(crate) max_age: Duration,
    pub(crate) guard: bool,
    /// Whether a later version of this operation is known here.
    pub(crate) has_later: L,
}

/// A value that answers.
#[derive(Debug)]
pub(crate) enum Hit {
    /// The operation has ended.
    Ended(Box<Record>),
    /// It is in progress.
    InProgress(Box<Record>),
}

impl<L: Fn(&OperationId, u64) -> bool> Judge<'_, L> {
    /// Judges `value`, found under the name of the draft's key.
    pub(crate) fn judge(&self, draft: &Draft, name: &[u8], value: &Bytes) -> Result<Hit, Refused> {
        let opened = entry::read(self.secret, name, value).map_err(|why| match why {
            Unreadable::Garbage => Refused::Garbage,
            Unreadable::Format => Refused::Format,
            Unreadable::Mac => Refused::Mac,
            Unreadable::Marker => Refused::Marker,
        })?;
        let entry::Opened { kind, observed, record } = opened;
        if !record.key.is_same_record(&draft.key) {
            return Err(Refused::Mac);
        }
        if record.key != draft.key || record.fingerprint != draft.fingerprint || record.recipe != draft.recipe
        {
            return Err(Refused::Fingerprint);
        }
        let Some(time) = self.time else { return Err(Refused::Time) };
        // Nobody can have seen it later than now: the store's clock has stepped since our last look at it.
        if observed > time.latest {
            return Err(Refused::Time);
        }
        if (self.has_later)(&record.operation_id, record.version) {
            return Err(Refused::Outdated);
        }
        match kind {
            Kind::Entry => {
                if is_over(observed.plus(self.max_age), time) {
                    return Err(Refused::Age);
                }
                if !is_final(&record) {
                    return Err(Refused::Garbage);
                }
                match ends(&record) {
                    Some(end) if !is_over(end, time.with_margin()) => Ok(Hit::Ended(Box::new(record))),
                    _ => Err(Refused::Window),
                }
            }
            Kind::Guard => {
                if !self.guard || is_over(observed.plus(GUARD), time) {
                    return Err(Refused::Age);
                }
                if record.state != State::InProgress {
                    return Err(Refused::Garbage);
                }
                if is_over(record.times.lease, time.with_margin()) {
                    return Err(Refused::Window);
                }
                Ok(Hit::InProgress(Box::new(record)))
            }
            Kind::Marker => Err(Refused::Marker),
        }
    }
}

impl Estimate {
    fn with_margin(self) -> Self {
        Self { latest: self.latest.plus(MARGIN), ..self }
    }
}

/// Whether `moment` may have come. By the latest time: where that is wrong, the store is asked for nothing, and where the other one were, a
/// key would be answered for that may be new work by now.
fn is_over(moment: Timestamp, time: Estimate) -> bool {
    moment.has_come(time.latest)
}

/// Whether the operation has ended, with something to tell retries.
pub(crate) fn is_final(record: &Record) -> bool {
    matches!(record.state, State::Completed | State::FailedReplayable)
}

/// When the answer, or what is told without one, is over. A final record has a window.
pub(crate) fn ends(record: &Record) -> Option<Timestamp> {
    let times = &record.times;
    let ends = [times.body_expires, times.expires, times.purge];
    times.expires.and(ends.into_iter().flatten().min())
}
