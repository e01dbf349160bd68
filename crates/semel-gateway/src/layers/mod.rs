//! The gateway's layers: what a request passes before the layer of `semel-tower` sees it. [`stack`](crate::stack) has their order.
//!
//! Each is a tower layer over [`AcceptedRequest`](crate::listener::AcceptedRequest)s. None of them fails or waits: a request is passed
//! on or answered on the spot, and every service is always ready. Those that decide about a request before it is passed on are
//! [`Filter`](filter::Filter)s; the others wait for the answer too.

mod body_errors;
mod contract;
mod cors;
mod filter;
mod format_refusals;
mod future;
mod hop_by_hop;
mod in_flight;
mod normalize;
mod path_aliases;
mod trace;
mod untrusted_headers;

pub(crate) use body_errors::{BodyErrors, BodyErrorsLayer};
pub(crate) use contract::PublishContract;
pub(crate) use cors::{Cors, CorsLayer, CorsRules};
pub(crate) use filter::{FilterLayer, Filtered};
pub(crate) use format_refusals::{FormatRefusals, FormatRefusalsLayer};
pub(crate) use hop_by_hop::HopByHop;
pub(crate) use in_flight::LimitInFlight;
pub(crate) use normalize::Normalize;
pub(crate) use path_aliases::PathAliases;
pub(crate) use trace::{TraceLayer, TraceRequests};
pub(crate) use untrusted_headers::UntrustedHeaders;
