//! What a handler holds of the operation that it executes.

use crate::identification::FirstRequest;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
use crate::identification::id_given;
use crate::outcome::OutcomeClass;
use semel::{OperationId, RecordKey, Resource, Right, StoredResponse, Ticket, Timestamp, downstream_key};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The operation that a handler executes: its identity, and what the handler has to say of it.
///
/// axum handlers take it as an argument; others find it in the request's extensions. Cheap to clone.
///
/// ```
/// # use semel_tower::Operation;
/// async fn create_payment(operation: Operation) -> String {
///     // The same on every attempt: the provider can deduplicate by it.
///     let charge_key = operation.downstream_key("charge");
///     operation.declare_resource("payment", "pay_1");
///     charge_key
/// }
/// ```
#[derive(Clone)]
pub struct Operation {
    id: OperationId,
    attempt: u32,
    key: Arc<RecordKey>,
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "only a store with transactions finishes inside")
    )]
    max_stored_response: usize,
    right: Right,
    slot: Arc<Mutex<Slot>>,
}

/// What the handler and the layer share.
#[derive(Default)]
pub(crate) struct Slot {
    /// The ticket, until it is taken to finish the operation.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) outcome: Option<OutcomeClass>,
    pub(crate) resource: Option<Resource>,
    pub(crate) schema_version: Option<String>,
    /// What is kept of the request beside its answer.
    pub(crate) request: FirstRequest,
    /// What retries get, where a transaction of the handler's finished the operation.
    pub(crate) finished: Option<FinishedInside>,
}

/// An operation that was finished inside the handler.
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(dead_code, reason = "only a store with transactions finishes inside")
)]
pub(crate) enum FinishedInside {
    /// Committed with this answer, and when the key's window is over.
    Committed(StoredResponse, Option<Timestamp>),
    /// It is unknown whether it happened.
    Unknown,
}

impl Operation {
    pub(crate) fn new(
        ticket: Ticket,
        key: RecordKey,
        max_stored_response: usize,
        request: FirstRequest,
    ) -> Self {
        Self {
            id: ticket.operation_id(),
            attempt: ticket.attempt(),
            key: Arc::new(key),
            max_stored_response,
            right: ticket.right(),
            slot: Arc::new(Mutex::new(Slot { ticket: Some(ticket), request, ..Slot::default() })),
        }
    }

    /// The operation's id, the same on every attempt.
    #[must_use]
    pub fn id(&self) -> OperationId {
        self.id
    }

    /// The attempt, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whose operation it is, as the layer found out.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.key.tenant
    }

    /// The operation's name, such as `POST /payments`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.key.operation
    }

    /// The right to execute, for a handler that sends for long or takes many steps: once it has ended (the time-out, a lease that could not
    /// be extended, evidence that settled the outcome), begin nothing more.
    ///
    /// ```
    /// # use semel_tower::Operation;
    /// # async fn charge(_: &str) {}
    /// # async fn handler(operation: Operation, parts: Vec<String>) -> Result<(), Box<dyn std::error::Error>> {
    /// for part in &parts {
    ///     operation.right().check()?;
    ///     charge(part).await;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn right(&self) -> &Right {
        &self.right
    }

    /// The downstream key of one effect, to send to the provider: the same on every attempt, another one for every effect.
    #[must_use]
    pub fn downstream_key(&self, effect: &str) -> String {
        downstream_key(self.id, effect)
    }

    /// Says what the operation made, as `Semel-Resource` does.
    pub fn declare_resource(&self, kind: impl Into<String>, id: impl Into<String>) {
        self.slot().resource = Some(Resource { kind: kind.into(), id: id.into() });
    }

    /// Says what became of the operation, as `Semel-Outcome` does: it beats the status.
    pub fn declare_outcome(&self, outcome: OutcomeClass) {
        self.slot().outcome = Some(outcome);
    }

    /// Says which schema the answer has, as `Semel-Schema-Version` does.
    pub fn declare_schema_version(&self, version: impl Into<String>) {
        self.slot().schema_version = Some(version.into());
    }

    /// The ticket itself, for a handler that finishes the operation on its own. `None` if it was taken before.
    ///
    /// Finish it before the handler answers: otherwise the outcome is unknown, and the client is answered so.
    #[must_use]
    pub fn take_ticket(&self) -> Option<Ticket> {
        self.slot().ticket.take()
    }

    /// Says that the outcome is in doubt while the handler goes on. The right to execute ends with the call; the future writes it down.
    pub(crate) fn doubt(&self, error: &str) -> impl Future<Output = ()> + Send + use<> {
        let doubting = self.slot().ticket.as_ref().map(|ticket| ticket.doubt(error));
        async move {
            if let Some(doubting) = doubting {
                doubting.await;
            }
        }
    }

    /// An answer as it is kept: with what retries need to know of the request, and without its body if that is too long.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(crate) fn kept(&self, answer: &StoredResponse) -> StoredResponse {
        let mut kept = match &answer.body {
            semel::Body::Stored(bytes) if bytes.len() > self.max_stored_response => {
                StoredResponse { body: semel::Body::NotStored, ..answer.clone() }
            }
            _ => answer.clone(),
        };
        let given = id_given(&kept.headers);
        self.slot().request.keep(given.as_deref(), &mut kept.headers);
        kept
    }

    pub(crate) fn slot(&self) -> MutexGuard<'_, Slot> {
        // A poisoned lock is safe to use: only fields are set under it.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

#[cfg(feature = "axum")]
mod extract {
    use super::Operation;
    use axum_core::extract::{FromRequestParts, OptionalFromRequestParts};
    use axum_core::response::{IntoResponse, Response};
    use http::StatusCode;
    use http::request::Parts;
    use std::convert::Infallible;

    /// A handler wants the operation, but the request was not protected.
    #[derive(Debug, Clone, Copy, thiserror::Error)]
    #[error(
        "this request is not protected: the handler needs an `IdempotencyLayer` around it, and the request a key"
    )]
    pub struct NotProtected;

    impl IntoResponse for NotProtected {
        fn into_response(self) -> Response {
            tracing::error!("{self}");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the server is misconfigured: this operation is not protected",
            )
                .into_response()
        }
    }

    impl<S: Send + Sync> FromRequestParts<S> for Operation {
        type Rejection = NotProtected;

        async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, NotProtected> {
            parts.extensions.get::<Self>().cloned().ok_or(NotProtected)
        }
    }

    impl<S: Send + Sync> OptionalFromRequestParts<S> for Operation {
        type Rejection = Infallible;

        async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Option<Self>, Infallible> {
            Ok(parts.extensions.get::<Self>().cloned())
        }
    }
}

#[cfg(feature = "axum")]
pub use extract::NotProtected;
