//! Evidence from any source: it settles, or is kept in the history, or has to come again.

use semel::cas::{Decide, Decided, Look, Updated, compare_and_swap, locked};
use semel::transition::{About, Evidence, Refusal, Settlement, remark, state_at};
use semel::{
    Actor, Engine, Happening, HistoryEntry, HistoryLine, OperationId, Record, Settled, State, StoreError,
    Timestamp,
};
use std::time::Duration;

/// What became of evidence.
pub(crate) enum Submitted {
    /// It settled the outcome, now or when it came before.
    Settled(Box<Record>),
    /// It says what is known already. What others told by themselves is kept in the history.
    Known,
    /// It is about a state of affairs that is over, or contradicts what is there: kept in the history, nothing else changed.
    Kept(Box<Record>, Refusal),
    /// Too early: the owner may still report the outcome. The evidence counts if it is submitted again after this long.
    TooEarly(Duration),
    /// There is no such operation.
    Missing,
}

/// Lines of one operation's history at most; evidence past that is logged, and not kept.
const MOST_LINES: usize = 100;

/// Brings evidence. `now` is a moment by the store's clock that is not long past.
pub(crate) async fn submit(
    engine: &Engine,
    about: &About,
    settlement: &Settlement,
    now: Timestamp,
) -> Result<Submitted, StoreError> {
    match engine.settle(about, settlement).await? {
        Settled::Done(record) => Ok(Submitted::Settled(record)),
        Settled::Missing => Ok(Submitted::Missing),
        Settled::Refused(refusal, record) => refused(engine, about, settlement, now, (refusal, record)).await,
    }
}

/// What becomes of evidence that does not settle the record, for this reason.
pub(crate) async fn refused(
    engine: &Engine,
    about: &About,
    settlement: &Settlement,
    now: Timestamp,
    (refusal, record): (Refusal, Box<Record>),
) -> Result<Submitted, StoreError> {
    // Another operation has its key by now, and the one that it is about is gone.
    if refusal == Refusal::OtherOperation {
        return Ok(Submitted::Missing);
    }
    let state = state_at(&record, now);
    let agrees = agrees(&settlement.evidence, state);
    // Somebody was quicker who asked the same. What others tell by themselves is for the history, unless that is over.
    if agrees && (state == State::Expired || !matches!(settlement.actor, Actor::Webhook(_))) {
        return Ok(Submitted::Known);
    }
    let too_early = record.times.lease.after(now).max(Duration::from_secs(1));
    if refusal == Refusal::LeaseRunning {
        return Ok(Submitted::TooEarly(too_early));
    }
    let history = engine.store().history(record.operation_id).await?;
    let settled_before = history.iter().any(|line| {
        let settled = matches!(
            line.entry.happening,
            Happening::SettledCompleted | Happening::SettledFailed | Happening::SettledNotExecuted
        );
        settled && tells(&line.entry, settlement)
    });
    if settled_before {
        return Ok(Submitted::Settled(record));
    }
    keep_once(engine, &record, settlement, history).await?;
    if agrees {
        return Ok(Submitted::Known);
    }
    let may_still_count =
        matches!(settlement.evidence, Evidence::Completed { .. }) || about.attempt == Some(record.attempt);
    if record.state == State::InProgress && may_still_count {
        return Ok(Submitted::TooEarly(too_early));
    }
    tracing::warn!(operation_id = %record.operation_id, actor = %settlement.actor, ?refusal, state = record.state.as_str(), "evidence has no effect");
    Ok(Submitted::Kept(record, refusal))
}

/// Keeps evidence in the history that names a key alone, and does nothing else by it: it may be about another operation under that key.
/// Whether it says what is known already.
pub(crate) async fn set_down(
    engine: &Engine,
    record: &Record,
    settlement: &Settlement,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let state = state_at(record, now);
    // What is over is not written to any more.
    if state != State::Expired {
        let history = engine.store().history(record.operation_id).await?;
        keep_once(engine, record, settlement, history).await?;
    }
    let known = agrees(&settlement.evidence, state);
    if !known {
        tracing::warn!(operation_id = %record.operation_id, actor = %settlement.actor, state = record.state.as_str(), "evidence with a key, but no operation id, has no effect");
    }
    Ok(known)
}

/// Each piece of evidence is kept once, however often it is brought, and by however many at a time: the line is written on condition that
/// the record is still the one after which `history` was read.
async fn keep_once(
    engine: &Engine,
    record: &Record,
    settlement: &Settlement,
    history: Vec<HistoryLine>,
) -> Result<(), StoreError> {
    let Settlement { actor, note, .. } = settlement;
    let unless = Some((settlement, history));
    write_remark(engine, Remark { engine, record: record.clone(), actor, note: note.as_deref(), unless })
        .await
}

/// Whether a line is of this piece of evidence.
fn tells(entry: &HistoryEntry, settlement: &Settlement) -> bool {
    entry.actor == settlement.actor && entry.note == settlement.note
}

/// Whether evidence says what the state says. Tombstones say nothing any more, and nobody asks.
fn agrees(evidence: &Evidence, state: State) -> bool {
    match evidence {
        _ if state == State::Expired => true,
        Evidence::Completed { .. } => state == State::Completed,
        Evidence::Failed { .. } => state == State::FailedReplayable,
        Evidence::NotExecuted | Evidence::Absent => state == State::FailedRetryable,
    }
}

/// Writes a remark into the history, if the record is still there.
async fn keep(engine: &Engine, record: &Record, actor: &Actor, note: &str) -> Result<(), StoreError> {
    let remark = Remark { engine, record: record.clone(), actor, note: Some(note), unless: None };
    write_remark(engine, remark).await
}

async fn write_remark(engine: &Engine, mut remark: Remark<'_>) -> Result<(), StoreError> {
    match compare_and_swap(engine.store(), &mut remark).await? {
        Updated::Locked => Err(locked()),
        Updated::Written(_) | Updated::Stopped(()) | Updated::Missing => Ok(()),
    }
}

/// A remark for the history of an operation, if that is still there.
struct Remark<'a> {
    engine: &'a Engine,
    record: Record,
    actor: &'a Actor,
    note: Option<&'a str>,
    /// Not if the history of the record tells of this evidence already, or is too long.
    unless: Option<(&'a Settlement, Vec<HistoryLine>)>,
}

impl Decide for Remark<'_> {
    type Stop = ();

    async fn decide(&mut self, look: Look) -> Result<Decided<()>, StoreError> {
        match look {
            Look::First => {}
            // Another operation has its key by now, in whose history it has no place.
            Look::Changed(changed, _) if changed.operation_id != self.record.operation_id => {
                return Ok(Decided::Stop(()));
            }
            Look::Changed(changed, _) => {
                self.record = *changed;
                if let Some((_, history)) = &mut self.unless {
                    *history = self.engine.store().history(self.record.operation_id).await?;
                }
            }
            Look::Lost(error) => return Err(error),
        }
        if let Some((settlement, history)) = &self.unless
            && (history.len() >= MOST_LINES || history.iter().any(|line| tells(&line.entry, settlement)))
        {
            return Ok(Decided::Stop(()));
        }
        let change = remark(&self.record, self.actor.clone(), self.note.map(str::to_owned));
        Ok(Decided::Write(self.record.expected(), change))
    }
}

/// Writes a remark about an operation, as [`keep`].
pub(crate) async fn keep_about(
    engine: &Engine,
    id: OperationId,
    actor: &Actor,
    note: &str,
) -> Result<(), StoreError> {
    match engine.find(id).await? {
        (_, Some(record)) => keep(engine, &record, actor, note).await,
        (_, None) => Ok(()),
    }
}
