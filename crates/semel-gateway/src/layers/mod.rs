//! The gateway's layers: what a request passes before the layer of `semel-tower` sees it. [`stack`](crate::stack) has their order.
//!
//! Each is a tower layer over [`AcceptedRequest`](crate::listener::AcceptedRequest)s. None of them fails or waits: a request is passed
//! on or answered on the spot, and every service is always ready.

mod body_errors;
mod contract;
mod format_refusals;
mod future;
mod hop_by_hop;
mod in_flight;
mod normalize;
mod path_aliases;
mod trace;
mod untrusted_headers;

pub(crate) use body_errors::{BodyErrors, BodyErrorsLayer};
pub(crate) use contract::{PublishContract, PublishContractLayer};
pub(crate) use format_refusals::{FormatRefusals, FormatRefusalsLayer};
pub(crate) use hop_by_hop::{HopByHop, HopByHopLayer};
pub(crate) use in_flight::{LimitInFlight, LimitInFlightLayer};
pub(crate) use normalize::{Normalize, NormalizeLayer};
pub(crate) use path_aliases::{PathAliases, PathAliasesLayer};
pub(crate) use trace::{TraceLayer, TraceRequests};
pub(crate) use untrusted_headers::{UntrustedHeaders, UntrustedHeadersLayer};
