//! Removes the headers that name tenants and targets from requests of peers that are not trusted.

use super::filter::Filter;
use crate::listener::AcceptedRequest;
use crate::tenant::ScopeConfig;
use bytes::Bytes;
use http::Response;
use std::sync::Arc;

/// Removes what peers may not say.
#[derive(Clone)]
pub(crate) struct UntrustedHeaders {
    tenants: Arc<ScopeConfig>,
}

impl UntrustedHeaders {
    pub(crate) fn new(tenants: Arc<ScopeConfig>) -> Self {
        Self { tenants }
    }
}

impl Filter for UntrustedHeaders {
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>> {
        let peer = accepted.client.peer.0.ip();
        self.tenants.drop_untrusted(peer, &mut accepted.parts.headers);
        Ok(())
    }
}
