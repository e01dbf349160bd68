//! Whose request it is: the sources of the tenant, as the configuration names them.
//!
//! A further source is one more [`TenantFrom`] and one more [`TenantSource`].

mod external_host;
mod forward_auth;
mod jwt;
mod peers;
mod replay_check;

pub(crate) use external_host::external_host;
pub use forward_auth::ForwardAuthConfig;
pub use jwt::{JwtConfig, JwtKeys, KeyError, KeyFile, KeyFileError, KeySet, KeySetError, KeyUrl};
pub use peers::Network;
pub use replay_check::ReplayCheckConfig;

use crate::PeerAddress;
use crate::headers::remove_all;
use crate::headers::{TARGETS, folded};
use crate::setting::show_duration;
use crate::tls::TlsError;
use forward_auth::ForwardAuth;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use jwt::VerifiedToken;
use replay_check::AskedBeforeReplays;
use semel::{Engine, MAX_TENANT};
use semel_tower::{ByCredential, IdempotencyLayer, TenantClaim, TenantFuture, TenantSource};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// How the tenant of a request is found.
#[derive(Clone, Debug)]
pub struct ScopeConfig {
    /// The sources, in the order in which they are asked: the first one present decides. None: the credential, and callers without
    /// one share the tenant `anonymous`.
    pub tenant: Vec<TenantFrom>,
    /// The peers whose headers are believed. Default: this machine.
    pub trusted_peers: Arc<[Network]>,
    /// What tokens are checked with. There is one if [`TenantFrom::Jwt`] is among the sources.
    pub jwt: Option<JwtConfig>,
    /// Who is asked. There is one if [`TenantFrom::ForwardAuth`] is among the sources.
    pub forward_auth: Option<ForwardAuthConfig>,
    /// Who is asked before every replay. `None`: whoever finds the operation gets its answer.
    pub replay_check: Option<ReplayCheckConfig>,
}

/// What renewing a credential does where it is the tenant, for clients and operators.
pub const REFRESHED: &str = "A refreshed bearer token is another tenant: a retry with it executes again.";

/// What revoking a credential does not do where nobody is asked before replays.
pub const REVOKED: &str = "A revoked credential still gets replays until the window is over.";

/// One source of the tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TenantFrom {
    /// A header, believed from trusted peers alone.
    Header(HeaderName),
    /// A claim of a verified bearer token.
    Jwt(String),
    /// An authority that is asked about every request.
    ForwardAuth,
    /// The credential, as a keyed hash.
    Credential,
}

impl Default for ScopeConfig {
    fn default() -> Self {
        Self {
            tenant: Vec::new(),
            trusted_peers: Network::LOOPBACK.into(),
            jwt: None,
            forward_auth: None,
            replay_check: None,
        }
    }
}

impl ScopeConfig {
    /// Lets the layer find tenants so. To be called within a runtime.
    ///
    /// # Errors
    /// The TLS files of forward-auth, or of the authority that is asked before replays, cannot be used.
    pub fn apply(&self, layer: IdempotencyLayer) -> Result<IdempotencyLayer, TlsError> {
        let layer = match &self.replay_check {
            Some(config) => {
                layer.replay_check(AskedBeforeReplays::new(config, Arc::clone(&self.trusted_peers))?)
            }
            None => layer,
        };
        if self.tenant.is_empty() {
            return Ok(layer);
        }
        let sources = self.tenant.iter().map(|from| self.source(from));
        Ok(layer.tenant_from(sources.collect::<Result<Vec<_>, _>>()?))
    }

    fn source(&self, from: &TenantFrom) -> Result<Arc<dyn TenantSource>, TlsError> {
        let peers = || Arc::clone(&self.trusted_peers);
        Ok(match (from, &self.jwt, &self.forward_auth) {
            (TenantFrom::Header(name), ..) => Arc::new(TrustedHeader { name: name.clone(), peers: peers() }),
            (TenantFrom::Credential, ..) => Arc::new(ByCredential),
            (TenantFrom::Jwt(claim), Some(config), _) => {
                Arc::new(VerifiedToken { claim: claim.clone(), config: config.clone() })
            }
            (TenantFrom::ForwardAuth, _, Some(config)) => {
                Arc::new(ForwardAuth::new(config.clone(), peers())?)
            }
            // No file comes to this: without what it needs, a source believes nobody.
            (TenantFrom::Jwt(_) | TenantFrom::ForwardAuth, ..) => Arc::new(BelievesNobody),
        })
    }

    /// Takes the headers that name tenants, and those that name another target, out of a request of a peer that is not trusted,
    /// protected or not: behind the gateway they would look as if the gateway had believed them. Spelt with underscores, which are the
    /// same to CGI and its heirs, headers that tell tenants apart are taken out whoever sends them: nobody here reads them so.
    pub fn drop_untrusted(&self, peer: IpAddr, headers: &mut HeaderMap) {
        if !self.trusts(peer) {
            for from in &self.tenant {
                if let TenantFrom::Header(name) = from {
                    headers.remove(name);
                }
            }
            for name in &TARGETS {
                headers.remove(name);
            }
        }
        for name in self.headers() {
            remove_all(headers, |other| other != name && are_one_variable(other, name));
        }
    }

    /// The headers by which tenants are told apart, apart from the credentials that every gateway knows.
    pub fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        let named = self.tenant.iter().filter_map(|from| match from {
            TenantFrom::Header(name) => Some(name),
            _ => None,
        });
        let sent = self.forward_auth.iter().flat_map(|asked| &asked.headers);
        named.chain(sent).chain(self.replay_check.iter().flat_map(|asked| &asked.headers))
    }

    /// Whether what this peer says of others is believed.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        is_trusted(&self.trusted_peers, peer)
    }

    /// Goes on with the keys that `old` fetched from the same URL: an issuer that is down must not end what is in force.
    pub(crate) fn keep_fetched_keys(&mut self, old: &Self) {
        let keys = |jwt: &JwtConfig| match &jwt.keys {
            JwtKeys::Url(url) => Some(Arc::clone(url)),
            JwtKeys::Fixed(_) | JwtKeys::File(_) => None,
        };
        let Some(fetched) = old.jwt.as_ref().and_then(keys) else { return };
        if let Some(jwt) = &mut self.jwt
            && keys(jwt).is_some_and(|new| new.is_same(&fetched))
        {
            jwt.keys = JwtKeys::Url(fetched);
        }
    }

    /// What an operator should know of the sources, in a sentence each.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for source in &self.tenant {
            match (source, &self.jwt, &self.forward_auth) {
                (TenantFrom::Jwt(claim), Some(jwt), _) => words.push(format!(
                    "a bearer token is verified with {}, and its claim `{claim}` names the tenant",
                    jwt.keys
                )),
                (TenantFrom::ForwardAuth, _, Some(asked)) => {
                    let cached = match asked.cache {
                        Some(lasts) => format!("; its answers are cached for {}", show_duration(lasts)),
                        None => String::new(),
                    };
                    let url = &asked.url;
                    words.push(format!(
                        "{} identifies callers; without its answer nothing is executed{cached}",
                        url.to_string().split('?').next().unwrap_or_default()
                    ));
                }
                _ => {}
            }
        }
        if self.jwt.as_ref().is_some_and(|jwt| jwt.audience.is_none()) {
            words.push("tokens for any audience are accepted (dangerous_any_audience)".into());
        }
        if self.by_credential() {
            words.push(REFRESHED.into());
        }
        if let Some(asked) = &self.replay_check {
            let url = asked.url.to_string();
            let url = url.split('?').next().unwrap_or_default();
            words.push(format!("{url} is asked before every replay: a revoked credential gets none"));
        } else if self.replays_to_revoked() {
            words.push(REVOKED.into());
        }
        words
    }

    /// Whether a credential that was revoked still gets replays: nobody who would know is asked.
    #[must_use]
    pub fn replays_to_revoked(&self) -> bool {
        let by_token = self.tenant.iter().any(|source| matches!(source, TenantFrom::Jwt(_)));
        self.replay_check.is_none() && (self.by_credential() || by_token)
    }

    /// Whether a renewed credential makes another tenant of a caller.
    #[must_use]
    pub fn by_credential(&self) -> bool {
        self.tenant.is_empty() || self.tenant.contains(&TenantFrom::Credential)
    }
}

impl fmt::Display for TenantFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Jwt(claim) => write!(f, "jwt:{claim}"),
            Self::ForwardAuth => f.write_str("forward-auth"),
            Self::Credential => f.write_str("credential"),
        }
    }
}

fn is_trusted(peers: &[Network], peer: IpAddr) -> bool {
    peers.iter().any(|network| network.contains(peer))
}

/// The name of a tenant: visible ASCII, and not too long. Nothing of it is mended, or two names would be one.
fn name_of(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let is_one = (1..=MAX_TENANT).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
    is_one.then(|| name.to_owned())
}

struct BelievesNobody;

impl TenantSource for BelievesNobody {
    fn claim<'a>(&'a self, _: &'a Engine, _: &'a Parts) -> TenantFuture<'a> {
        Box::pin(std::future::ready(Ok(TenantClaim::Invalid)))
    }
}

/// The tenant as a proxy in front names it.
struct TrustedHeader {
    name: HeaderName,
    peers: Arc<[Network]>,
}

impl TenantSource for TrustedHeader {
    fn claim<'a>(&'a self, _: &'a Engine, parts: &'a Parts) -> TenantFuture<'a> {
        let claim = self.read(parts);
        Box::pin(std::future::ready(Ok(claim)))
    }
}

/// Whether a service behind CGI, or one of its heirs, could not tell these fields apart.
fn are_one_variable(one: &HeaderName, other: &HeaderName) -> bool {
    one.as_str().len() == other.as_str().len() && folded(one.as_str()) == folded(other.as_str())
}

impl TrustedHeader {
    fn read(&self, parts: &Parts) -> TenantClaim {
        // The peer is whoever the connection is with. What a request says of others (`X-Forwarded-For`) anybody can write.
        let trusted = parts
            .extensions
            .get::<PeerAddress>()
            .is_some_and(|PeerAddress(peer)| is_trusted(&self.peers, peer.ip()));
        if !trusted {
            return TenantClaim::Absent;
        }
        let mut values = parts.headers.get_all(&self.name).iter();
        let Some(value) = values.next() else {
            return TenantClaim::Absent;
        };
        // Two lines may be the client's and the proxy's: which one is true cannot be told.
        if values.next().is_some() {
            return TenantClaim::Invalid;
        }
        name_of(value.as_bytes().trim_ascii()).map_or(TenantClaim::Invalid, TenantClaim::Tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, Request};

    const ACCOUNT: HeaderName = HeaderName::from_static("x-account");

    fn scope(peers: &str) -> ScopeConfig {
        ScopeConfig {
            tenant: vec![TenantFrom::Header(ACCOUNT)],
            trusted_peers: [Network::parse(peers).unwrap()].into(),
            ..ScopeConfig::default()
        }
    }

    fn read(peer: Option<&str>, values: &[&[u8]]) -> TenantClaim {
        let mut parts = Request::new(()).into_parts().0;
        for value in values {
            parts.headers.append(ACCOUNT, HeaderValue::from_bytes(value).unwrap());
        }
        parts.headers.insert("x-forwarded-for", HeaderValue::from_static("10.0.0.1"));
        parts.headers.insert("forwarded", HeaderValue::from_static("for=10.0.0.1"));
        if let Some(peer) = peer {
            parts.extensions.insert(PeerAddress(peer.parse().unwrap()));
        }
        TrustedHeader { name: ACCOUNT, peers: scope("10.0.0.0/8").trusted_peers }.read(&parts)
    }

    #[test]
    fn a_header_is_believed_from_trusted_peers_alone() {
        let ann = TenantClaim::Tenant("ann".into());
        assert_eq!(read(Some("10.9.9.9:1"), &[b"ann"]), ann);
        assert_eq!(read(Some("[::ffff:10.9.9.9]:1"), &[b"ann"]), ann);
        for peer in [Some("11.0.0.1:1"), Some("127.0.0.1:1"), Some("[::1]:1"), None] {
            assert_eq!(read(peer, &[b"ann"]), TenantClaim::Absent, "{peer:?}");
            assert_eq!(read(peer, &[b""]), TenantClaim::Absent, "{peer:?}");
        }
    }

    #[test]
    fn a_trusted_header_that_names_nobody_is_invalid_not_absent() {
        let peer = Some("10.9.9.9:1");
        assert_eq!(read(peer, &[]), TenantClaim::Absent);
        assert_eq!(read(peer, &[b"  ann\t"]), TenantClaim::Tenant("ann".into()));
        assert_eq!(read(peer, &[&[b'x'; 255]]), TenantClaim::Tenant("x".repeat(255)));
        for values in [
            &[&b""[..]][..],
            &[b"  "],
            &[b"an n"],
            &["änn".as_bytes()],
            &[b"ann\xff"],
            &[&[b'x'; 256]],
            &[b"ann", b"ann"],
            &[b"", b"ann"],
        ] {
            assert_eq!(read(peer, values), TenantClaim::Invalid, "{values:?}");
        }
    }

    #[test]
    fn an_untrusted_peers_header_does_not_go_on_to_the_service() {
        let scope = scope("10.0.0.0/8");
        let mut headers = HeaderMap::new();
        headers.insert(ACCOUNT, HeaderValue::from_static("ann"));
        scope.drop_untrusted("10.0.0.1".parse().unwrap(), &mut headers);
        assert!(headers.contains_key(ACCOUNT));
        ScopeConfig::default().drop_untrusted("11.0.0.1".parse().unwrap(), &mut headers);
        assert!(headers.contains_key(ACCOUNT), "of a header that names no tenant nothing is known");
        scope.drop_untrusted("11.0.0.1".parse().unwrap(), &mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn nobody_s_header_goes_on_under_a_name_that_a_service_takes_for_it() {
        for peer in ["10.0.0.1", "11.0.0.1"] {
            let mut headers = HeaderMap::new();
            for name in ["x_account", "x_accounts", "y_account", "x-accoun_"] {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static("ann"));
            }
            scope("10.0.0.0/8").drop_untrusted(peer.parse().unwrap(), &mut headers);
            let left: std::collections::BTreeSet<_> = headers.keys().map(HeaderName::as_str).collect();
            assert_eq!(left, ["x-accoun_", "x_accounts", "y_account"].into(), "{peer}");
        }
    }
}
