//! Asking about an unknown outcome.

use bytes::Bytes;
use semel::{OperationId, Record, RecordKey, Resource, StoredResponse};
use std::fmt;
use std::pin::Pin;

/// A source that can be polled about the outcome of an operation. [`HttpPoll`](crate::HttpPoll) asks over HTTP; any
/// `async fn(Question) -> Finding` will do.
///
/// ```
/// use semel_worker::{Asking, Finding, Question};
///
/// let asking = Asking::new(|question: Question| async move {
///     // … look for a payment that carries `question.operation_id` …
///     Finding::Unclear("bank_closed".into())
/// });
/// ```
pub trait Reconcile: Send + Sync + 'static {
    /// Asks. It is dropped at the deadline; a panic counts as no answer.
    ///
    /// It may be asked about the same attempt any number of times, and must not bring anything about by it. What it finds may be
    /// written into the service's own tables before it says so, if that is written once however often it is asked: the outcome is
    /// settled after it.
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Finding> + Send + '_>>;
}

impl<F, A> Reconcile for F
where
    F: Fn(Question) -> A + Send + Sync + 'static,
    A: Future<Output = Finding> + Send + 'static,
{
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Finding> + Send + '_>> {
        Box::pin(self(question))
    }
}

/// What is asked about.
#[derive(Clone, PartialEq, Eq)]
pub struct Question {
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt at it whose outcome is unknown.
    pub attempt: u32,
    /// Tenant, operation and the client's key.
    pub key: RecordKey,
    /// What the operation is known to have made.
    pub resource: Option<Resource>,
    /// The last recovery point that was committed,
    pub recovery_point: Option<String>,
    /// and what the owner left there.
    pub checkpoint: Option<Bytes>,
    /// The how-manieth question it is since the outcome became unknown; the first is 1.
    pub number: u32,
}

impl Question {
    /// The question about a record that was just claimed, whose key the client knows as `key`, and whose checkpoint is this.
    pub(crate) fn about(record: &Record, key: RecordKey, checkpoint: Option<Bytes>) -> Self {
        Self {
            operation_id: record.operation_id,
            attempt: record.attempt,
            key,
            resource: record.resource.clone(),
            recovery_point: record.recovery_point.clone(),
            checkpoint,
            number: record.reconcile_attempts,
        }
    }
}

// Keys and checkpoints stay out of logs.
impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("operation_id", &self.operation_id)
            .field("attempt", &self.attempt)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// What came of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// It happened.
    Completed {
        /// What retries get; `None`: 409, the answer was not stored.
        response: Option<StoredResponse>,
        /// What was made.
        resource: Option<Resource>,
    },
    /// It was refused for good.
    Failed {
        /// What retries get; `None`: 409, the answer was not stored.
        response: Option<StoredResponse>,
        /// What it concerns.
        resource: Option<Resource>,
    },
    /// There is no trace of it, **and** the polled service refuses this attempt and the ones before it from now on. Without that
    /// promise it is [`Unclear`](Self::Unclear): a request may still be on its way. It counts once the lease is over.
    Absent,
    /// It is not known yet. A short code, such as `still_pending`, for the log and the history.
    Unclear(String),
}
