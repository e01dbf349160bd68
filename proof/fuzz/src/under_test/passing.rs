//! Which fields the gateway passes on.

#[path = "../../../../crates/semel-gateway/src/headers/hop_by_hop.rs"]
mod headers;
#[path = "../../../../crates/semel-gateway/src/headers/names.rs"]
mod names;

pub(crate) use headers::{ConnectionOptions, clean_trailers, drop_claims, drop_hop_by_hop};
pub(crate) use names::{Decisive, is_identity, is_method_override, misspelt_key};

use http::{HeaderMap, Version};

/// Asks the service for it.
pub(crate) fn ask_again(asked: &ConnectionOptions, headers: &mut HeaderMap, version: Version) {
    asked.ask(headers, version);
}
