//! What one request went through: recorded by the engine and the layer, exported by a tracer such as the gateway's OTLP exporter.
//!
//! A trace belongs to a task, not to an argument of every call: code that answers requests runs it [`within`](Trace::within)
//! a trace, and code that spawns a task for the request passes it on. Without a trace, recording reads one task-local variable, and
//! nothing is measured or allocated.
//!
//! Nothing that a client keeps to itself is noted: no key, no tenant, no header, no body.

use crate::identity::OperationId;
use crate::observe::StoreCall;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

tokio::task_local! {
    static CURRENT: Option<Arc<Trace>>;
}

/// The maximum number of recorded store calls. A request needs two; more than this many add nothing.
const MOST_CALLS: usize = 16;

/// What is noted of one request. See the [module](self).
#[derive(Debug, Default)]
pub struct Trace(Mutex<Noted>);

/// What was noted so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Noted {
    /// The operation's name, of a request that is protected.
    pub operation: Option<Arc<str>>,
    /// The operation, once it is known.
    pub operation_id: Option<OperationId>,
    /// The attempt that the request executes.
    pub attempt: Option<u32>,
    /// What was decided about the request.
    pub decision: Option<&'static str>,
    /// What was stored of the attempt that the request executed.
    pub outcome: Option<&'static str>,
    /// The code of the problem document that the client got.
    pub problem: Option<&'static str>,
    /// The first calls to the store.
    pub store: Vec<NotedCall>,
    /// The service's turn.
    pub service: Option<ServiceTurn>,
}

/// A call to the store that a request took part in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NotedCall {
    /// Which one.
    pub call: StoreCall,
    /// How many requests shared it.
    pub batch: usize,
    /// When it began.
    pub begun: Instant,
    /// How long it took.
    pub took: Duration,
    /// Whether the store answered.
    pub answered: bool,
}

/// The service was asked.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServiceTurn {
    /// When.
    pub begun: Instant,
    /// How long it took; `None` while it runs.
    pub took: Option<Duration>,
    /// The status of its answer; `None` without one.
    pub status: Option<u16>,
}

/// Work that runs with or without a trace: see [`Trace::within`].
pub type Within<F> = tokio::task::futures::TaskLocalFuture<Option<Arc<Trace>>, F>;

impl Trace {
    /// Runs `work` with this trace, or with none.
    pub fn within<F: Future>(trace: Option<Arc<Self>>, work: F) -> Within<F> {
        CURRENT.scope(trace, work)
    }

    /// Does something with this trace.
    pub fn during<T>(trace: Arc<Self>, work: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(Some(trace), work)
    }

    /// The trace of this task, to take along to another one.
    #[must_use]
    pub fn current() -> Option<Arc<Self>> {
        CURRENT.try_with(Clone::clone).ok().flatten()
    }

    /// What was noted so far.
    #[must_use]
    pub fn noted(&self) -> Noted {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Noted> {
        // Each note is whole, whatever happened to another one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes something, if this task is traced.
pub fn note(write: impl FnOnce(&mut Noted)) {
    let _untraced = CURRENT.try_with(|current| {
        if let Some(trace) = current {
            write(&mut trace.lock());
        }
    });
}

/// Notes that the service's turn begins, if this task is traced.
#[must_use]
pub fn service_begins() -> Option<Instant> {
    let traced = CURRENT.try_with(Option::is_some).unwrap_or(false);
    let begun = traced.then(Instant::now)?;
    note(|noted| noted.service = Some(ServiceTurn { begun, took: None, status: None }));
    Some(begun)
}

/// Notes what the service answered, if anything.
pub fn service_ended(begun: Option<Instant>, status: Option<u16>) {
    if let Some(begun) = begun {
        note(|noted| noted.service = Some(ServiceTurn { begun, took: Some(begun.elapsed()), status }));
    }
}

/// How an item got to the store and back.
#[derive(Clone, Copy)]
pub(crate) struct Ride {
    pub(crate) begun: Instant,
    pub(crate) took: Duration,
    pub(crate) batch: usize,
}

pub(crate) fn note_call(call: StoreCall, ride: Option<Ride>, answered: bool) {
    let Some(Ride { begun, took, batch }) = ride else { return };
    note(|noted| {
        if noted.store.len() < MOST_CALLS {
            noted.store.push(NotedCall { call, batch, begun, took, answered });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn notes_go_to_the_trace_of_the_task_and_nowhere_else() {
        let trace = Arc::new(Trace::default());
        note(|noted| noted.attempt = Some(1));
        Trace::within(Some(Arc::clone(&trace)), async {
            note(|noted| noted.attempt = Some(2));
            let taken_along = Trace::current();
            let other = tokio::spawn(async {
                note(|noted| noted.attempt = Some(3));
                Trace::within(taken_along, async { note(|noted| noted.decision = Some("created")) }).await;
            });
            other.await.unwrap();
        })
        .await;
        let noted = trace.noted();
        assert_eq!((noted.attempt, noted.decision), (Some(2), Some("created")));
        assert!(Trace::current().is_none());
    }

    #[test]
    fn a_request_that_loses_for_ever_is_not_noted_for_ever() {
        let trace = Arc::new(Trace::default());
        let ride = Ride { begun: Instant::now(), took: Duration::ZERO, batch: 1 };
        Trace::during(Arc::clone(&trace), || {
            for _ in 0..1000 {
                note_call(StoreCall::Swap, Some(ride), true);
            }
        });
        assert_eq!(trace.noted().store.len(), MOST_CALLS);
    }
}
