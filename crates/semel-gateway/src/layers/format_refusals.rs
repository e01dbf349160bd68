//! Puts refusals that are not about idempotency into the format of the profile in force.
//!
//! Other layers refuse with plain problem documents, and know nothing of profiles. `semel-tower` and the proxy make theirs in the
//! right format by themselves: those name operations, and go out with the headers that belong to them. Refusals of gRPC calls are
//! statuses, whatever the profile.

use super::future::Answered;
use crate::listener::{AcceptedRequest, AnswerBody};
use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;
use semel::problem::{Format, PlainProblem, Profile};
use semel_tower::grpc;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// Formats refusals.
#[derive(Clone)]
pub(crate) struct FormatRefusalsLayer {
    /// `None`: they are as they should be.
    format: Option<Arc<Format>>,
}

impl FormatRefusalsLayer {
    pub(crate) fn new(format: Format) -> Self {
        let format = (format != Format::of(Profile::Ietf)).then(|| Arc::new(format));
        Self { format }
    }
}

impl<S> Layer<S> for FormatRefusalsLayer {
    type Service = FormatRefusals<S>;

    fn layer(&self, inner: S) -> FormatRefusals<S> {
        FormatRefusals { inner, format: self.format.clone() }
    }
}

/// Made by [`FormatRefusalsLayer`].
#[derive(Clone)]
pub(crate) struct FormatRefusals<S> {
    inner: S,
    format: Option<Arc<Format>>,
}

impl<S> Service<AcceptedRequest> for FormatRefusals<S>
where
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Formatting<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, accepted: AcceptedRequest) -> Self::Future {
        let parts = &accepted.parts;
        let is_call = grpc::is_call(&parts.method, parts.version, &parts.headers);
        Formatting { answer: self.inner.call(accepted), format: self.format.clone(), is_call }
    }
}

pin_project! {
    /// Waits for the answer.
    pub(crate) struct Formatting<F> {
        #[pin]
        answer: F,
        format: Option<Arc<Format>>,
        is_call: bool,
    }
}

impl<F: Future<Output = Answered>> Future for Formatting<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        let this = self.project();
        let Ok(mut answer) = ready!(this.answer.poll(context));
        if *this.is_call && grpc::refuse(&mut answer) {
            answer.body_mut().replace(Bytes::new());
        } else if let Some(format) = this.format
            && let Some(problem) = answer.extensions_mut().remove::<PlainProblem>()
        {
            put_into(format, &problem, &mut answer);
        }
        Poll::Ready(Ok(answer))
    }
}

/// What says when to come back, and that the connection ends, stays.
fn put_into(format: &Format, problem: &PlainProblem, answer: &mut Response<AnswerBody>) {
    let (parts, body) = format.plain(problem).into_parts();
    *answer.status_mut() = parts.status;
    for (name, value) in &parts.headers {
        answer.headers_mut().insert(name, value.clone());
    }
    answer.body_mut().replace(body);
}
