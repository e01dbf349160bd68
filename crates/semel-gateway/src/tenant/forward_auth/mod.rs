//! Tenants from an authority that is asked about every request, as by nginx's `auth_request` and Traefik's `ForwardAuth`.
//!
//! - `question.rs`: what is sent;
//! - `authority.rs`: whom it is sent to;
//! - `cache.rs`: what was answered a moment ago, if that may be used again.
//!
//! Fail closed: without a clear yes nothing is executed, and no other source is tried.

mod authority;
mod cache;
mod question;

use super::{Network, is_trusted, name_of};
use crate::tls::{ClientTlsFiles, TlsError};
pub(super) use authority::Authority;
use cache::Cache;
use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
pub(super) use question::Question;
use semel::Engine;
use semel_http::Endpoint;
use semel_tower::{TenantClaim, TenantFuture, TenantSource};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Who is asked, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardAuthConfig {
    /// Where. Nothing of a request changes it.
    pub url: Endpoint,
    /// Whom to trust there, for `https`.
    pub tls: ClientTlsFiles,
    /// How long an answer may take. Default 2 s.
    pub deadline: Duration,
    /// Which headers of the request are sent. Default: `Authorization`, `Cookie` and `X-Api-Key`.
    pub headers: Vec<HeaderName>,
    /// The header of the answer that names the tenant.
    pub tenant_header: HeaderName,
    /// How long the answer to the very same question may be used again. None: every request is asked about.
    pub cache: Option<Duration>,
}

impl ForwardAuthConfig {
    /// How long an answer may take, unless told otherwise.
    pub const DEADLINE: Duration = Duration::from_secs(2);
    /// What is sent, unless told otherwise.
    pub const HEADERS: [HeaderName; 3] =
        [http::header::AUTHORIZATION, http::header::COOKIE, semel::headers::X_API_KEY];
}

/// The tenant as the answer names it.
pub(super) struct ForwardAuth {
    config: ForwardAuthConfig,
    authority: Authority,
    cache: Option<Cache>,
    trusted_peers: Arc<[Network]>,
}

impl ForwardAuth {
    pub(super) fn new(config: ForwardAuthConfig, trusted_peers: Arc<[Network]>) -> Result<Self, TlsError> {
        Ok(Self {
            authority: Authority::new(&config.url, &config.tls, config.deadline)?,
            cache: config.cache.map(Cache::new),
            config,
            trusted_peers,
        })
    }

    async fn ask(&self, parts: &Parts) -> TenantClaim {
        let trusts = |peer: IpAddr| is_trusted(&self.trusted_peers, peer);
        let question = Question::about(parts, &self.config.headers, trusts);
        let place = self.cache.as_ref().map(|cache| (cache, cache.place(&question)));
        if let Some((cache, place)) = &place
            && let Some(tenant) = cache.tenant(place)
        {
            return TenantClaim::Tenant(tenant);
        }
        let claim = match self.authority.ask(&question).await {
            Ok((status, headers)) => self.understand(status, &headers),
            Err(error) => undecided(&error),
        };
        if let (Some((cache, place)), TenantClaim::Tenant(tenant)) = (place, &claim) {
            cache.keep(place, tenant);
        }
        claim
    }

    fn understand(&self, status: StatusCode, headers: &HeaderMap) -> TenantClaim {
        match status {
            status if status.is_success() => {
                let mut names = headers.get_all(&self.config.tenant_header).iter();
                let name = names.next().filter(|_| names.next().is_none());
                match name.and_then(|name| name_of(name.as_bytes().trim_ascii())) {
                    Some(tenant) => TenantClaim::Tenant(tenant),
                    None => undecided(&"it accepted the request, but its answer names no tenant"),
                }
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => TenantClaim::Refused {
                challenges: headers.get_all(WWW_AUTHENTICATE).iter().cloned().collect(),
            },
            status => undecided(&format_args!("it answered {status}")),
        }
    }
}

impl TenantSource for ForwardAuth {
    fn claim<'a>(&'a self, _: &'a Engine, parts: &'a Parts) -> TenantFuture<'a> {
        Box::pin(async move { Ok(self.ask(parts).await) })
    }
}

fn undecided(why: &dyn std::fmt::Display) -> TenantClaim {
    tracing::error!(%why, "forward-auth: caller not identified; nothing was executed");
    TenantClaim::Undecided
}
