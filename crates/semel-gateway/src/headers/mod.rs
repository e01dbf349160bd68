//! Header fields: what they are by their names, which ones go from one side to the other, and which the gateway adds.
//!
//! - `accept.rs`: which media type a client would rather have;
//! - `names.rs`: hop-by-hop fields, Semel's own, and those that say which request it is, or whose;
//! - `hop_by_hop.rs`: what is dropped on the way, and what of it is asked of the service again;
//! - `forwarded.rs`: `Forwarded` and `X-Forwarded-*`.

mod accept;
mod forwarded;
mod hop_by_hop;
mod names;

pub(crate) use accept::Accept;
pub(crate) use forwarded::ForwardedHeaders;
pub(crate) use hop_by_hop::{
    ConnectionOptions, announce, clean_answered_trailers, clean_trailers, drop_claims, drop_hop_by_hop,
    drop_ours, remove_all,
};
pub(crate) use names::{Decisive, TARGETS, folded, is_method_override, misspelt_key};
