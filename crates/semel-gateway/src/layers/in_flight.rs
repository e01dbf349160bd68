//! Limits the requests in flight, and each client to its share of them.
//!
//! A request is in flight until its answer has gone out and its execution has ended, whether or not its client is still there.

use super::future::MaybeAnswered;
use crate::capacity::{Party, Refused, Shares};
use crate::listener::{AcceptedRequest, AnswerBody};
use crate::listener::{Trusts, UnderWayHolder};
use crate::responses;
use http::Response;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Limits the requests in flight.
#[derive(Clone)]
pub(crate) struct LimitInFlightLayer {
    permits: Arc<Shares<UnderWayHolder>>,
    trusts: Trusts,
}

impl LimitInFlightLayer {
    /// Requests of peers in `trusts` count for the client whom they name.
    pub(crate) fn new(permits: Arc<Shares<UnderWayHolder>>, trusts: Trusts) -> Self {
        Self { permits, trusts }
    }
}

impl<S> Layer<S> for LimitInFlightLayer {
    type Service = LimitInFlight<S>;

    fn layer(&self, inner: S) -> LimitInFlight<S> {
        LimitInFlight { inner, permits: self.permits.clone(), trusts: self.trusts.clone() }
    }
}

/// Made by [`LimitInFlightLayer`].
#[derive(Clone)]
pub(crate) struct LimitInFlight<S> {
    inner: S,
    permits: Arc<Shares<UnderWayHolder>>,
    trusts: Trusts,
}

impl<S> Service<AcceptedRequest> for LimitInFlight<S>
where
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = MaybeAnswered<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut accepted: AcceptedRequest) -> Self::Future {
        let peer = accepted.client.peer.0.ip();
        let client = Party::of_request(peer, &accepted.parts.headers, &*self.trusts);
        match self.permits.take(Some(client), accepted.under_way.holder()) {
            Ok(permit) => accepted.under_way.hold(permit),
            Err(refused) => {
                let answer = match refused {
                    Refused::Full => responses::too_busy(),
                    Refused::OverShare => responses::over_share(),
                };
                return MaybeAnswered::here(accepted.answer(answer));
            }
        }
        MaybeAnswered::passed_on(self.inner.call(accepted))
    }
}
