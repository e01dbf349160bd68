//! The host that a client asked for: it counts when requests are compared.

use crate::listener::PeerAddress;
use crate::tenant::ScopeConfig;
use http::header::HOST;
use http::request::Parts;
use semel::headers::X_FORWARDED_HOST;
use semel_tower::all_values;
use std::borrow::Cow;

/// `X-Forwarded-Host` of a trusted peer, else `Host`, which the request target's host and `:authority` were written into.
pub(crate) fn external_host<'a>(scope: &ScopeConfig, parts: &'a Parts) -> Option<Cow<'a, [u8]>> {
    let is_trusted = || parts.extensions.get().is_some_and(|PeerAddress(peer)| scope.trusts(peer.ip()));
    // A peer is looked up only where there is something to believe.
    let forwarded = all_values(&parts.headers, &X_FORWARDED_HOST).filter(|_| is_trusted());
    forwarded.or_else(|| all_values(&parts.headers, &HOST))
}
