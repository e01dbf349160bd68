//! Ends what is about the client's connection alone, and what no client may say.
//!
//! Removes hop-by-hop fields and Semel's own; refuses a `Connection` that names a field of the request, and a misspelt key.

use super::filter::Filter;
use crate::headers::{ConnectionOptions, Decisive, drop_claims, drop_hop_by_hop, misspelt_key};
use crate::listener::AcceptedRequest;
use crate::responses;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response};
use semel::headers::IDEMPOTENCY_KEY;
use std::sync::Arc;

/// Removes what is about one connection.
#[derive(Clone)]
pub(crate) struct HopByHop {
    decisive: Decisive,
    key_headers: Arc<[HeaderName]>,
}

impl HopByHop {
    /// `tenant_headers` are those that tell tenants apart, and `key_headers` those that keys are in: `Connection` may not name them, and
    /// trailers may not carry them.
    pub(crate) fn new<'a>(
        tenant_headers: impl IntoIterator<Item = &'a HeaderName>,
        key_headers: &'a [HeaderName],
    ) -> Self {
        let decisive = Decisive::with(tenant_headers.into_iter().chain(key_headers));
        Self { decisive, key_headers: key_headers.into() }
    }
}

impl Filter for HopByHop {
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>> {
        let headers = &mut accepted.parts.headers;
        // Read before it is removed.
        accepted.asked = ConnectionOptions::of(accepted.parts.version, headers);
        accepted.body.clean_trailers_by(&self.decisive);
        is_unambiguous(&self.decisive, &self.key_headers, headers)?;
        drop_hop_by_hop(headers);
        drop_claims(headers);
        Ok(())
    }
}

/// Checks that the service and the gateway read the same key, and the same tenant, out of these headers.
fn is_unambiguous(
    decisive: &Decisive,
    key_headers: &[HeaderName],
    headers: &HeaderMap,
) -> Result<(), Box<Response<Bytes>>> {
    let refuse = |detail| Err(Box::new(responses::bad_request(detail)));
    if decisive.is_named_by_connection(headers) {
        return refuse(
            "Connection names an end-to-end field, such as the Idempotency-Key, a credential or the account.",
        );
    }
    if let Some(meant) = headers.keys().find_map(|name| misspelt_key(name.as_str(), key_headers)) {
        return refuse(match *meant == IDEMPOTENCY_KEY {
            true => {
                "The name of the key's header is misspelled. Send it as documented: Idempotency-Key, with a hyphen."
            }
            false => "The name of the key's header is misspelled. Send it as documented, with hyphens.",
        });
    }
    Ok(())
}
