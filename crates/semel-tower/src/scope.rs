//! Whose request it is.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use semel::fingerprint::tenant_of_credential;
use semel::{Engine, StoreError};
use std::sync::Arc;

/// The tenant of a request, set as a request extension by the application's own authentication, before the layer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tenant(pub String);

/// The tenant of callers without a credential.
const ANONYMOUS: &str = "anonymous";

const API_KEY: &str = "x-api-key";

/// How the tenant of a request is found.
#[derive(Clone, Default)]
pub(crate) enum Scope {
    /// The [`Tenant`] extension; without one, the caller's credential, hashed; without one, everybody shares a tenant.
    #[default]
    ExtensionOrCredential,
    /// As the application says; `None` is a request without a tenant, which is refused.
    Told(Told),
}

type Told = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

impl Scope {
    /// The tenant of a request; `None`: it has none, and must be refused.
    pub(crate) async fn tenant(&self, engine: &Engine, parts: &Parts) -> Result<Option<String>, StoreError> {
        match self {
            Self::Told(told) => Ok(told(parts).filter(|tenant| !tenant.is_empty())),
            Self::ExtensionOrCredential => {
                if let Some(Tenant(tenant)) = parts.extensions.get() {
                    return Ok(Some(tenant.clone()).filter(|tenant| !tenant.is_empty()));
                }
                match credential(&parts.headers) {
                    // A credential is not kept, only its hash under a secret that all instances share.
                    Some(credential) => {
                        let secret = engine.shared_secret().await?;
                        Ok(Some(tenant_of_credential(secret, &credential)))
                    }
                    None => Ok(Some(ANONYMOUS.to_owned())),
                }
            }
        }
    }
}

/// The credentials that a caller shows, each with its kind, so that an API key never equals a token of the same text. All of them
/// count: where one is shared (a proxy's, say), the other tells the callers apart.
fn credential(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut shown = Vec::new();
    for name in [AUTHORIZATION.as_str(), API_KEY] {
        for value in headers.get_all(name) {
            // No field value holds a line feed, so that no two lists of fields are spelt the same.
            shown.extend_from_slice(name.as_bytes());
            shown.push(b':');
            shown.extend_from_slice(value.as_bytes());
            shown.push(b'\n');
        }
    }
    (!shown.is_empty()).then_some(shown)
}
