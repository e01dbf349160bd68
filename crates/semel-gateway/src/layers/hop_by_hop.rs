//! Ends what is about the client's connection alone, and what no client may say.
//!
//! Removes hop-by-hop fields and Semel's own; refuses a `Connection` that names a field of the request, and a misspelt key.

use super::future::MaybeAnswered;
use crate::headers::{ConnectionOptions, Decisive, drop_claims, drop_hop_by_hop, is_misspelt_key};
use crate::listener::{AcceptedRequest, AnswerBody};
use crate::responses;
use bytes::Bytes;
use http::Response;
use http::{HeaderMap, HeaderName};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Removes what is about one connection.
#[derive(Clone)]
pub(crate) struct HopByHopLayer {
    decisive: Decisive,
}

impl HopByHopLayer {
    /// `tenant_headers` are those that tell tenants apart: `Connection` may not name them, and trailers may not carry them.
    pub(crate) fn new<'a>(tenant_headers: impl IntoIterator<Item = &'a HeaderName>) -> Self {
        Self { decisive: Decisive::with(tenant_headers) }
    }
}

impl<S> Layer<S> for HopByHopLayer {
    type Service = HopByHop<S>;

    fn layer(&self, inner: S) -> HopByHop<S> {
        HopByHop { inner, decisive: self.decisive.clone() }
    }
}

/// Made by [`HopByHopLayer`].
#[derive(Clone)]
pub(crate) struct HopByHop<S> {
    inner: S,
    decisive: Decisive,
}

impl<S> Service<AcceptedRequest> for HopByHop<S>
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
        let headers = &mut accepted.parts.headers;
        // Read before it is removed.
        accepted.asked = ConnectionOptions::of(accepted.parts.version, headers);
        accepted.body.clean_trailers_by(&self.decisive);
        if let Err(refusal) = is_unambiguous(&self.decisive, headers) {
            return MaybeAnswered::here(accepted.answer(*refusal));
        }
        drop_hop_by_hop(headers);
        drop_claims(headers);
        MaybeAnswered::passed_on(self.inner.call(accepted))
    }
}

/// Checks that the service and the gateway read the same key, and the same tenant, out of these headers.
fn is_unambiguous(decisive: &Decisive, headers: &HeaderMap) -> Result<(), Box<Response<Bytes>>> {
    let refuse = |detail| Err(Box::new(responses::bad_request(detail)));
    if decisive.is_named_by_connection(headers) {
        return refuse(
            "Connection names an end-to-end field, such as the Idempotency-Key, a credential or the account.",
        );
    }
    if headers.keys().any(|name| is_misspelt_key(name.as_str())) {
        return refuse(
            "The name of the key's header is misspelled. Send it as documented: Idempotency-Key, with a hyphen.",
        );
    }
    Ok(())
}
