//! What happens to a call on its way to the store and back.

use super::disk::Disk;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::faults::Faults;
use crate::life::Life;
use crate::trace::{Place, Trace};
use semel::{OperationId, StoreError};
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The way between one instance and the store. Clones are the same way.
#[derive(Clone)]
pub(crate) struct Weather {
    pub(crate) faults: Arc<Faults>,
    pub(crate) dice: Dice,
    pub(crate) life: Arc<Life>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) outage: Outage,
    pub(crate) link: Link,
    pub(crate) name: String,
    pub(crate) max_concurrent_batches: usize,
    /// The longest that anybody waits for an answer of the store.
    pub(crate) patience: Duration,
}

/// Until when nobody reaches the store. Clones are of the same store.
#[derive(Clone, Default)]
pub(crate) struct Outage(Arc<Mutex<Option<Instant>>>);

/// Until when nothing passes between one gateway and the store, and whether calls still arrive, and their answers do not. Clones are the same link.
#[derive(Clone, Default)]
pub(crate) struct Link(Arc<Mutex<Option<(Instant, Cut)>>>);

/// Which way is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    Calls,
    Answers,
}

impl Link {
    pub(crate) fn cut(&self, way: Cut, span: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now() + span, way));
    }

    pub(crate) fn heal(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn is_cut(&self) -> Option<Cut> {
        let (until, way) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        (until > Instant::now()).then_some(way)
    }
}

impl Outage {
    pub(crate) fn last(&self, span: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + span);
    }

    fn is_on(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| until > Instant::now())
    }
}

/// One call of the store, and the operations that it is about: so that its lines are found with the others of those.
pub(super) struct Call {
    name: &'static str,
    ids: Vec<OperationId>,
}

impl Call {
    pub(super) fn about(name: &'static str, ids: Vec<OperationId>) -> Self {
        Self { name, ids }
    }
}

impl From<&'static str> for Call {
    fn from(name: &'static str) -> Self {
        Self::about(name, Vec::new())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        self.ids.iter().try_for_each(|id| write!(f, " {id}"))
    }
}

impl Weather {
    pub(super) fn max_concurrent_batches(&self) -> usize {
        self.max_concurrent_batches
    }

    /// Whether a process that starts now reaches the store.
    pub(super) fn is_open(&self) -> bool {
        !self.outage.is_on() && self.link.is_cut().is_none() && self.life.is_alive()
    }

    /// Whether an open transaction holds the record that comes next.
    pub(super) fn locks(&self) -> bool {
        self.faults.strikes(Fault::StoreLocked)
    }

    /// Has a call carried out, with whatever happens to it.
    pub(super) async fn around<T: Send + 'static>(
        self,
        disk: Disk,
        call: Call,
        carry_out: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.life.pass().await;
        self.pause().await;
        self.life.pass().await;
        if self.outage.is_on() || self.faults.strikes(Fault::StoreUnavailable) {
            self.note(&call, "unavailable");
            return Err(StoreError::Unavailable("simulated".into()));
        }
        let cut = self.link.is_cut();
        if let Some(way) = cut {
            self.note(&call, "the link is cut");
            if way == Cut::Calls {
                return pending().await;
            }
        }
        if self.faults.strikes(Fault::StoreLostBefore) {
            self.note(&call, "lost before it was carried out");
            return Err(lost(&call));
        }
        let crashes = disk.contents().crashes();
        if self.faults.strikes(Fault::StoreLate) {
            self.note(&call, "carried out when nobody waits any more");
            let late = self.patience + self.dice.millis(1, 3_000);
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                // What was under way when the store crashed is gone.
                if disk.contents().crashes() == crashes {
                    let _ = carry_out();
                }
            });
            return pending().await;
        }
        let done = carry_out();
        let position = disk.contents().position();
        if cut.is_some() {
            return pending().await;
        }
        if self.faults.strikes(Fault::StoreAnswerLate) {
            self.note(&call, "its answer comes when nobody waits any more");
            return pending().await;
        }
        self.pause().await;
        self.life.pass().await;
        if disk.contents().crashes() != crashes || self.faults.strikes(Fault::StoreLostAfter) {
            self.note(&call, "carried out, and its answer lost");
            return Err(lost(&call));
        }
        if done.is_ok() {
            disk.contents().acknowledge(position);
        }
        done
    }

    async fn pause(&self) {
        let pause = if self.dice.chance(0.02) { self.dice.millis(5, 200) } else { self.dice.millis(0, 3) };
        if pause.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(pause).await;
        }
    }

    fn note(&self, call: &Call, what: &str) {
        self.trace.note(Place::Store, format_args!("{} store {call}: {what}", self.name));
    }
}

/// A read whose answer is lost has changed nothing.
fn lost(call: &Call) -> StoreError {
    let reads = ["read", "find", "history", "list", "count_live", "live_operations", "due", "recall"];
    if reads.contains(&call.name) {
        StoreError::Unavailable("simulated: the answer was lost".into())
    } else {
        StoreError::Lost("simulated".into())
    }
}
