//! What became of the spans of requests.

use super::registered;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfResult {
    result: &'static str,
}

/// Clones count together.
#[derive(Clone)]
pub(crate) struct TelemetryMeters {
    exported: Counter,
    dropped: Counter,
}

impl TelemetryMeters {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let traced = registered(
            registry,
            "traced_requests",
            "Requests whose spans were exported, or dropped because the collector was too slow",
            None,
            Family::<OfResult, Counter>::default(),
        );
        let of = |result| traced.get_or_create_owned(&OfResult { result });
        Self { exported: of("exported"), dropped: of("dropped") }
    }

    pub(crate) fn spans(&self, exported: bool, count: u64) {
        let counter = if exported { &self.exported } else { &self.dropped };
        counter.inc_by(count);
    }
}
