//! What layers share that look at a request and either pass it on, changed or not, or answer it on the spot.

use super::future::MaybeAnswered;
use crate::listener::{AcceptedRequest, AnswerBody};
use bytes::Bytes;
use http::Response;
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Looks at a request before the next service does.
pub(crate) trait Filter {
    /// Checks and changes the request; `Err` is the answer, and the next service never sees the request.
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>>;
}

/// A filter as a tower layer.
#[derive(Clone)]
pub(crate) struct FilterLayer<F>(pub(crate) F);

impl<F: Clone, S> Layer<S> for FilterLayer<F> {
    type Service = Filtered<F, S>;

    fn layer(&self, inner: S) -> Filtered<F, S> {
        Filtered { filter: self.0.clone(), inner }
    }
}

/// Made by [`FilterLayer`].
#[derive(Clone)]
pub(crate) struct Filtered<F, S> {
    filter: F,
    inner: S,
}

impl<F, S> Service<AcceptedRequest> for Filtered<F, S>
where
    F: Filter,
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = MaybeAnswered<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut accepted: AcceptedRequest) -> Self::Future {
        match self.filter.apply(&mut accepted) {
            Ok(()) => MaybeAnswered::passed_on(self.inner.call(accepted)),
            Err(answer) => MaybeAnswered::here(accepted.answer(*answer)),
        }
    }
}
