//! Why a request to the service has no answer.

use crate::listener::RequestBody;
use http::Request;
use semel_tower::BoxError;
use std::time::Duration;

/// Why there is no answer.
pub(super) enum Failure {
    /// No byte was written, and here is the request again.
    HandedBack(Box<Request<RequestBody>>),
    /// No byte was written.
    NotSent(BoxError),
    /// Something was written: the service may have acted on it.
    Sent(BoxError),
}

/// The service has been silent for too long.
#[derive(Debug, thiserror::Error)]
#[error("the service sent nothing for {0:?}")]
pub(super) struct GaveUp(pub(super) Duration);
