//! Traces requests: each belongs to the trace that its headers name, or begins one. Its span is exported once it is answered.

use super::future::Answered;
use crate::listener::{AcceptedRequest, AnswerBody};
use crate::otlp::{Recording, Tracing};
use http::Response;
use pin_project_lite::pin_project;
use semel::trace::{Trace, Within};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// Traces requests, where the configuration names a collector.
#[derive(Clone)]
pub(crate) struct TraceLayer {
    tracing: Option<Arc<Tracing>>,
}

impl TraceLayer {
    pub(crate) fn new(tracing: Option<Arc<Tracing>>) -> Self {
        Self { tracing }
    }
}

impl<S> Layer<S> for TraceLayer {
    type Service = TraceRequests<S>;

    fn layer(&self, inner: S) -> TraceRequests<S> {
        TraceRequests { inner, tracing: self.tracing.clone() }
    }
}

/// Made by [`TraceLayer`].
#[derive(Clone)]
pub(crate) struct TraceRequests<S> {
    inner: S,
    tracing: Option<Arc<Tracing>>,
}

impl<S> Service<AcceptedRequest> for TraceRequests<S>
where
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Traced<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut accepted: AcceptedRequest) -> Self::Future {
        let Some(tracing) = &self.tracing else {
            return Traced::Untraced { answer: self.inner.call(accepted) };
        };
        let scheme = accepted.client.forwarded.scheme();
        let recording = tracing.begin(&mut accepted.parts, scheme);
        let trace = recording.as_ref().map(Recording::trace);
        let answer = match &trace {
            Some(trace) => Trace::during(Arc::clone(trace), || self.inner.call(accepted)),
            None => self.inner.call(accepted),
        };
        Traced::Traced { answer: Trace::within(trace, answer), recording }
    }
}

pin_project! {
    /// Waits for the answer, and notes it. Dropped before, it tells that the client hung up.
    #[project = Projected]
    pub(crate) enum Traced<F> {
        Untraced {
            #[pin]
            answer: F,
        },
        Traced {
            #[pin]
            answer: Within<F>,
            // `None`: this trace is not sampled.
            recording: Option<Recording>,
        },
    }
}

impl<F: Future<Output = Answered>> Future for Traced<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        match self.project() {
            Projected::Untraced { answer } => answer.poll(context),
            Projected::Traced { answer, recording } => {
                let answered = ready!(answer.poll(context));
                if let (Some(mut recording), Ok(answer)) = (recording.take(), &answered) {
                    recording.answered(answer.status());
                }
                Poll::Ready(answered)
            }
        }
    }
}
