//! Whose payment it is.

use crate::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;

/// The account that a request acts for: the tenant of its key, and the owner of its payments.
///
/// The example believes a header. A real service takes it from its own authentication (the subject of a verified token, the
/// owner of an API key): whoever can choose the account can read the answers that are stored for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Account(String);

const HEADER: &str = "x-account-id";
const LONGEST: usize = 64;

impl Account {
    /// The account that these headers name. The layer and the handlers both ask here, so that they never disagree.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let name = headers.get(HEADER)?.to_str().ok()?;
        let named = (1..=LONGEST).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
        named.then(|| Self(name.to_owned()))
    }

    /// The account whose tenant an operation was recorded for.
    pub(crate) fn of_tenant(tenant: &str) -> Self {
        Self(tenant.to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Account {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Self::of(&parts.headers).ok_or(ApiError::NoAccount)
    }
}
