//! Whose request it is: the sources of the tenant, as the configuration names them.
//!
//! A further source (a verified token, somebody who is asked) is one more [`TenantFrom`] and one more
//! [`TenantSource`].

mod peers;

pub use peers::Network;

use crate::PeerAddress;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use semel::Engine;
use semel_tower::{ByCredential, Claim, ClaimFuture, IdempotencyLayer, TenantSource};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The longest name of a tenant in a header.
const MAX_TENANT: usize = 255;

/// How the tenant of a request is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScopeConfig {
    /// The sources, in the order in which they are asked: the first one present decides. None: the credential, and callers without
    /// one share the tenant `anonymous`.
    pub tenant: Vec<TenantFrom>,
    /// The peers whose headers are believed. Default: this machine.
    pub trusted_peers: Arc<[Network]>,
}

/// One source of the tenant.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TenantFrom {
    /// A header, believed from trusted peers alone.
    Header(HeaderName),
    /// The credential, as a keyed hash.
    Credential,
}

impl Default for ScopeConfig {
    fn default() -> Self {
        Self { tenant: Vec::new(), trusted_peers: Network::LOOPBACK.into() }
    }
}

impl ScopeConfig {
    /// Lets the layer find tenants so.
    #[must_use]
    pub fn apply(&self, layer: IdempotencyLayer) -> IdempotencyLayer {
        if self.tenant.is_empty() {
            return layer;
        }
        layer.tenant_from(self.tenant.iter().map(|from| -> Arc<dyn TenantSource> {
            match from {
                TenantFrom::Header(name) => {
                    Arc::new(TrustedHeader { name: name.clone(), peers: Arc::clone(&self.trusted_peers) })
                }
                TenantFrom::Credential => Arc::new(ByCredential),
            }
        }))
    }

    /// Takes the headers that name tenants out of a request of a peer that is not trusted, protected or not: behind the gateway
    /// they would look as if the gateway had believed them.
    pub fn drop_untrusted(&self, peer: IpAddr, headers: &mut HeaderMap) {
        for from in &self.tenant {
            if let TenantFrom::Header(name) = from
                && !self.trusts(peer)
            {
                headers.remove(name);
            }
        }
    }

    /// Whether what this peer says of others is believed.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        is_trusted(&self.trusted_peers, peer)
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
            Self::Credential => f.write_str("credential"),
        }
    }
}

fn is_trusted(peers: &[Network], peer: IpAddr) -> bool {
    peers.iter().any(|network| network.contains(peer))
}

/// The tenant as a proxy in front names it.
struct TrustedHeader {
    name: HeaderName,
    peers: Arc<[Network]>,
}

impl TenantSource for TrustedHeader {
    fn claim<'a>(&'a self, _: &'a Engine, parts: &'a Parts) -> ClaimFuture<'a> {
        let claim = self.read(parts);
        Box::pin(std::future::ready(Ok(claim)))
    }
}

impl TrustedHeader {
    fn read(&self, parts: &Parts) -> Claim {
        // The peer is whoever the connection is with. What a request says of others (`X-Forwarded-For`) anybody can write.
        let trusted = parts
            .extensions
            .get::<PeerAddress>()
            .is_some_and(|PeerAddress(peer)| is_trusted(&self.peers, peer.ip()));
        if !trusted {
            return Claim::Absent;
        }
        let mut values = parts.headers.get_all(&self.name).iter();
        let Some(value) = values.next() else {
            return Claim::Absent;
        };
        // Two lines may be the client's and the proxy's: which one is true cannot be told.
        if values.next().is_some() {
            return Claim::Invalid;
        }
        let name = value.as_bytes().trim_ascii();
        match std::str::from_utf8(name) {
            Ok(name)
                if (1..=MAX_TENANT).contains(&name.len())
                    && name.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Claim::Tenant(name.to_owned())
            }
            _ => Claim::Invalid,
        }
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
        }
    }

    fn read(peer: Option<&str>, values: &[&[u8]]) -> Claim {
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
        let ann = Claim::Tenant("ann".into());
        assert_eq!(read(Some("10.9.9.9:1"), &[b"ann"]), ann);
        assert_eq!(read(Some("[::ffff:10.9.9.9]:1"), &[b"ann"]), ann);
        for peer in [Some("11.0.0.1:1"), Some("127.0.0.1:1"), Some("[::1]:1"), None] {
            assert_eq!(read(peer, &[b"ann"]), Claim::Absent, "{peer:?}");
            assert_eq!(read(peer, &[b""]), Claim::Absent, "{peer:?}");
        }
    }

    #[test]
    fn a_trusted_header_that_names_nobody_is_invalid_not_absent() {
        let peer = Some("10.9.9.9:1");
        assert_eq!(read(peer, &[]), Claim::Absent);
        assert_eq!(read(peer, &[b"  ann\t"]), Claim::Tenant("ann".into()));
        assert_eq!(read(peer, &[&[b'x'; 255]]), Claim::Tenant("x".repeat(255)));
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
            assert_eq!(read(peer, values), Claim::Invalid, "{values:?}");
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
}
