//! Which fields the gateway passes on.

#[path = "../../../../crates/semel-gateway/src/proxy/headers.rs"]
mod headers;

pub(crate) use headers::{Asked, drop_claims, drop_hop_by_hop};

use http::{HeaderMap, Version};

/// Asks the service for it.
pub(crate) fn ask_again(asked: &Asked, headers: &mut HeaderMap, version: Version) {
    asked.ask(headers, version);
}
