//! Whose request it is.

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use semel::fingerprint::tenant_of_credential;
use semel::headers::X_API_KEY;
use semel::{Engine, MAX_TENANT, StoreError};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The tenant of a request, set as a request extension by the application's own authentication, outside the layer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tenant(pub String);

/// What a caller has shown beside its headers, such as the names in a client certificate: set as a request extension, outside the
/// layer, by the code that verified it. It counts as a credential.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ShownCredential(pub Arc<[u8]>);

impl std::fmt::Debug for ShownCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShownCredential(…)")
    }
}

/// The tenant of callers without a credential.
const ANONYMOUS: &str = "anonymous";

/// How the tenant of a request is found.
#[derive(Clone, Default)]
pub(crate) enum TenantLookup {
    /// The [`Tenant`] extension; without one, the caller's credential, hashed; without one, everybody shares a tenant.
    #[default]
    ExtensionOrCredential,
    /// As the application says; `None` is a request without a tenant, which is refused.
    Told(Told),
    /// As the first of these says that finds anything in the request.
    Sources(Arc<[Arc<dyn TenantSource>]>),
}

type Told = Arc<dyn Fn(&Parts) -> Option<String> + Send + Sync>;

/// What a request says of its tenant, as one source reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TenantClaim {
    /// This tenant.
    Tenant(String),
    /// Nothing: the next source is asked.
    Absent,
    /// Something that cannot be believed. The request is refused with 401, whatever other sources would say.
    Invalid,
    /// The same, on the word of an authority that was asked.
    Refused {
        /// Values of `WWW-Authenticate` for the client.
        challenges: Vec<HeaderValue>,
    },
    /// It cannot be determined now, because the authority does not answer. The request is refused with 503, whatever other sources would say.
    Undecided,
}

/// What a request's sources come to.
pub(crate) enum FoundTenant {
    Tenant(String),
    /// No tenant, and the challenges for the client.
    Nobody {
        challenges: Vec<HeaderValue>,
    },
    Undecided,
}

impl FoundTenant {
    const NOBODY: Self = Self::Nobody { challenges: Vec::new() };

    fn of(tenant: Option<String>) -> Self {
        let fits = |tenant: &String| (1..=MAX_TENANT).contains(&tenant.len());
        tenant.filter(fits).map_or(Self::NOBODY, Self::Tenant)
    }
}

/// The future of [`TenantSource::claim`].
pub type TenantFuture<'a> = Pin<Box<dyn Future<Output = Result<TenantClaim, StoreError>> + Send + 'a>>;

/// A source of tenants: a header, a token, a credential, an authority that is asked.
pub trait TenantSource: Send + Sync + 'static {
    /// What the request says of its tenant. The engine is there for the secret of keyed hashes.
    fn claim<'a>(&'a self, engine: &'a Engine, parts: &'a Parts) -> TenantFuture<'a>;
}

/// Distinguishes tenants by their credential (`Authorization`, `X-Api-Key`, [`ShownCredential`]): a keyed hash, under a secret that all
/// instances on one store share. A refreshed bearer token is another tenant.
#[derive(Clone, Copy, Debug)]
pub struct ByCredential;

impl TenantSource for ByCredential {
    fn claim<'a>(&'a self, engine: &'a Engine, parts: &'a Parts) -> TenantFuture<'a> {
        Box::pin(async move {
            Ok(by_credential(engine, parts).await?.map_or(TenantClaim::Absent, TenantClaim::Tenant))
        })
    }
}

impl TenantLookup {
    /// The tenant of a request, or why it must be refused.
    pub(crate) async fn tenant(&self, engine: &Engine, parts: &Parts) -> Result<FoundTenant, StoreError> {
        match self {
            Self::Told(told) => Ok(FoundTenant::of(told(parts))),
            Self::ExtensionOrCredential => {
                if let Some(Tenant(tenant)) = parts.extensions.get() {
                    return Ok(FoundTenant::of(Some(tenant.clone())));
                }
                let tenant = by_credential(engine, parts).await?;
                Ok(FoundTenant::Tenant(tenant.unwrap_or_else(|| ANONYMOUS.to_owned())))
            }
            Self::Sources(sources) => {
                for source in sources.iter() {
                    return Ok(match source.claim(engine, parts).await? {
                        TenantClaim::Absent => continue,
                        TenantClaim::Tenant(tenant) => FoundTenant::of(Some(tenant)),
                        TenantClaim::Invalid => FoundTenant::NOBODY,
                        TenantClaim::Refused { challenges } => FoundTenant::Nobody { challenges },
                        TenantClaim::Undecided => FoundTenant::Undecided,
                    });
                }
                Ok(FoundTenant::NOBODY)
            }
        }
    }
}

/// A credential is not kept, only its hash under a secret that all instances share.
async fn by_credential(engine: &Engine, parts: &Parts) -> Result<Option<String>, StoreError> {
    let Some(credential) = credential(&parts.headers, parts.extensions.get()) else {
        return Ok(None);
    };
    let secret = engine.shared_secret().await?;
    Ok(Some(tenant_of_credential(secret, &credential)))
}

/// The credentials that a caller shows, each with its kind, so that an API key never equals a token of the same text. All of them
/// count: where one is shared (a proxy's, say), the other distinguishes the callers.
fn credential(headers: &HeaderMap, beside: Option<&ShownCredential>) -> Option<Vec<u8>> {
    let mut shown = Vec::new();
    if let Some(ShownCredential(bytes)) = beside {
        // No field has a name like this. The length keeps its bytes apart from what follows, whatever they are.
        shown.extend_from_slice(format!(" {}:", bytes.len()).as_bytes());
        shown.extend_from_slice(bytes);
        shown.push(b'\n');
    }
    for name in [AUTHORIZATION, X_API_KEY] {
        for value in headers.get_all(&name) {
            // No field value holds a line feed, so that no two lists of fields are spelt the same.
            shown.extend_from_slice(name.as_str().as_bytes());
            shown.push(b':');
            shown.extend_from_slice(value.as_bytes());
            shown.push(b'\n');
        }
    }
    (!shown.is_empty()).then_some(shown)
}
