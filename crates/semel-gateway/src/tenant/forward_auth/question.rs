//! What is asked about a request: its credentials, and what it is for.

use crate::PeerAddress;
use crate::headers::ForwardedHeaders;
use crate::upstream::Caller;
use http::header::{FORWARDED, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use semel::headers::{
    X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_METHOD, X_FORWARDED_PROTO, X_FORWARDED_URI,
};
use std::net::IpAddr;

/// What a trusted peer may have said of those before it.
const INTRODUCED: [HeaderName; 3] = [X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST];

/// The header fields of the question, in the order in which they are sent.
pub(in crate::tenant) struct Question(HeaderMap);

impl Question {
    /// Asks about a request, with these headers of it, none of which is a name that is used here.
    pub(in crate::tenant) fn about(
        parts: &Parts,
        sent: &[HeaderName],
        trusts: impl Fn(IpAddr) -> bool,
    ) -> Self {
        let mut fields = HeaderMap::new();
        let copy = |name: &HeaderName, fields: &mut HeaderMap| {
            for value in parts.headers.get_all(name) {
                fields.append(name.clone(), value.clone());
            }
        };
        INTRODUCED.iter().chain([&HOST]).for_each(|name| copy(name, &mut fields));
        let peer = parts.extensions.get::<PeerAddress>().map(|PeerAddress(peer)| peer.ip());
        let is_trusted = peer.is_some_and(trusts);
        match parts.extensions.get::<Caller>() {
            Some(caller) => caller.forwarded.announce(&mut fields, peer, is_trusted),
            None => ForwardedHeaders::default().announce(&mut fields, peer, is_trusted),
        }
        for name in [HOST, FORWARDED] {
            fields.remove(name);
        }
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        for (name, text) in [(X_FORWARDED_METHOD, parts.method.as_str()), (X_FORWARDED_URI, target)] {
            // Methods and targets are made of what a value may hold.
            if let Ok(value) = HeaderValue::from_str(text) {
                fields.insert(name, value);
            }
        }
        sent.iter().for_each(|name| copy(name, &mut fields));
        Self(fields)
    }

    pub(super) fn fields(&self) -> &HeaderMap {
        &self.0
    }
}
