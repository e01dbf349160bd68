//! Tells the client why its body failed: the services behind this one only know that it broke off.
//!
//! From here on a request is a plain [`http::Request`]; what is known of its connection goes along in its extensions.

use super::future::Answered;
use crate::listener::{AcceptedRequest, AnswerBody, BodyFailure, Client, RequestBody, UnderWay};
use crate::responses;
use crate::upstream::Caller;
use http::{Request, Response};
use pin_project_lite::pin_project;
use semel_tower::{Body, BoxError};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// Answers for failed bodies.
#[derive(Clone)]
pub(crate) struct BodyErrorsLayer;

impl<S> Layer<S> for BodyErrorsLayer {
    type Service = BodyErrors<S>;

    fn layer(&self, inner: S) -> BodyErrors<S> {
        BodyErrors { inner }
    }
}

/// Made by [`BodyErrorsLayer`].
#[derive(Clone)]
pub(crate) struct BodyErrors<S> {
    inner: S,
}

impl<S> Service<AcceptedRequest> for BodyErrors<S>
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // A service that failed says so when it is called.
        self.inner.poll_ready(context).map(|_| Ok(()))
    }

    fn call(&mut self, accepted: AcceptedRequest) -> Self::Future {
        let AcceptedRequest { mut parts, body, client, under_way, asked } = accepted;
        let Client { peer, forwarded, certificate, .. } = client;
        let (in_flight, state) = (under_way.in_flight().cloned(), under_way.state().clone());
        let extensions = &mut parts.extensions;
        extensions.insert(peer);
        if let Some(certificate) = certificate {
            extensions.insert(certificate);
        }
        extensions.insert(Caller { in_flight, forwarded, state, asked });
        Answering { answer: self.inner.call(Request::from_parts(parts, body)), under_way: Some(under_way) }
    }
}

pin_project! {
    /// Waits for the answer.
    pub(crate) struct Answering<F> {
        #[pin]
        answer: F,
        under_way: Option<UnderWay>,
    }
}

impl<F: Future<Output = Result<Response<Body>, BoxError>>> Future for Answering<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        let this = self.project();
        let answer = ready!(this.answer.poll(context)).unwrap_or_else(|error| {
            // The layer answers for protected requests, the proxy for all others.
            tracing::error!(%error, "the service layer failed; answering 502");
            responses::bad_gateway().map(Body::from)
        });
        // A future is not polled again once it is ready.
        let Some(under_way) = this.under_way.take() else { return Poll::Pending };
        let answer = unless_body_failed(answer, &under_way);
        Poll::Ready(Ok(answer.map(|body| AnswerBody::new(body, under_way))))
    }
}

fn unless_body_failed(answer: Response<Body>, under_way: &UnderWay) -> Response<Body> {
    let told = match under_way.state().failure() {
        None => return answer,
        Some(BodyFailure::Late) => responses::too_slow(),
        Some(BodyFailure::TooLong) => responses::too_long(),
        Some(BodyFailure::MadeRoom) => responses::made_room(),
        Some(BodyFailure::Malformed) => {
            responses::bad_request("The request body is not framed as HTTP/1.1 requires.")
        }
    };
    told.map(Body::from)
}
