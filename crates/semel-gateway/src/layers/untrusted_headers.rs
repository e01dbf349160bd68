//! Removes the headers that name tenants and targets from requests of peers that are not trusted.

use super::future::MaybeAnswered;
use crate::listener::{AcceptedRequest, AnswerBody};
use crate::tenant::ScopeConfig;
use http::Response;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Removes what peers may not say.
#[derive(Clone)]
pub(crate) struct UntrustedHeadersLayer {
    tenants: Arc<ScopeConfig>,
}

impl UntrustedHeadersLayer {
    pub(crate) fn new(tenants: Arc<ScopeConfig>) -> Self {
        Self { tenants }
    }
}

impl<S> Layer<S> for UntrustedHeadersLayer {
    type Service = UntrustedHeaders<S>;

    fn layer(&self, inner: S) -> UntrustedHeaders<S> {
        UntrustedHeaders { inner, tenants: self.tenants.clone() }
    }
}

/// Made by [`UntrustedHeadersLayer`].
#[derive(Clone)]
pub(crate) struct UntrustedHeaders<S> {
    inner: S,
    tenants: Arc<ScopeConfig>,
}

impl<S> Service<AcceptedRequest> for UntrustedHeaders<S>
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
        self.tenants.drop_untrusted(peer, &mut accepted.parts.headers);
        MaybeAnswered::passed_on(self.inner.call(accepted))
    }
}
