//! Refuses requests that the service may take for a protected operation, though no route matches them: other spellings of a path,
//! another method or another target in a header.

use super::filter::Filter;
use crate::listener::AcceptedRequest;
use crate::route::Routes;
use bytes::Bytes;
use http::Response;
use std::sync::Arc;

/// Refuses ambiguous paths.
#[derive(Clone)]
pub(crate) struct PathAliases {
    routes: Arc<Routes>,
}

impl PathAliases {
    pub(crate) fn new(routes: Arc<Routes>) -> Self {
        Self { routes }
    }
}

impl Filter for PathAliases {
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>> {
        if let Some(ambiguity) = self.routes.ambiguity(&accepted.parts) {
            return Err(Box::new(ambiguity.into_response()));
        }
        if self.routes.has_key_elsewhere(&accepted.parts) {
            accepted.under_way.has_key();
        }
        Ok(())
    }
}
