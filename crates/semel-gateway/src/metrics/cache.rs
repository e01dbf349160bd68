//! The metrics of the Redis in front of the store.

use super::registered;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use semel_redis::{Counts, Refused, Trouble};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is told of the tier. Its own counters are read when they are asked for.
pub(super) struct CacheMeters {
    counts: Arc<Counts>,
    lookups: Family<OfLookup, Counter>,
    refused: Family<OfRefusal, Counter>,
    troubles: Family<OfTrouble, Counter>,
    written: Counter,
    open: Gauge,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfLookup {
    result: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfRefusal {
    reason: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfTrouble {
    kind: &'static str,
}

impl CacheMeters {
    pub(super) fn new(registry: &mut Registry, counts: Arc<Counts>) -> Self {
        Self {
            counts,
            lookups: registered(
                registry,
                "cache_lookups",
                "Requests by what Redis had: a replay, an operation in progress, nothing, or it was not asked",
                None,
                Family::default(),
            ),
            refused: registered(
                registry,
                "cache_refused",
                "Values in Redis that were not used, by reason; the store was asked instead",
                None,
                Family::default(),
            ),
            troubles: registered(
                registry,
                "cache_troubles",
                "How often Redis was given up for a while, by what it did",
                None,
                Family::default(),
            ),
            written: registered(
                registry,
                "cache_written",
                "Values written to Redis",
                None,
                Counter::default(),
            ),
            open: registered(
                registry,
                "cache_breaker_open",
                "1 while Redis is not used and every request asks the store",
                None,
                Gauge::default(),
            ),
        }
    }

    pub(super) fn read(&self) {
        let counts = &*self.counts;
        let set = |counter: &Counter, count| counter.inner().store(count, Ordering::Relaxed);
        for (result, count) in [
            ("replay", counts.replays()),
            ("in_progress", counts.in_progress()),
            ("miss", counts.misses()),
            ("not_asked", counts.unasked()),
        ] {
            set(&self.lookups.get_or_create(&OfLookup { result }), count);
        }
        for why in Refused::ALL {
            set(&self.refused.get_or_create(&OfRefusal { reason: why.as_str() }), counts.refused(why));
        }
        for trouble in Trouble::ALL {
            set(
                &self.troubles.get_or_create(&OfTrouble { kind: trouble.as_str() }),
                counts.troubles(trouble),
            );
        }
        set(&self.written, counts.written());
        self.open.set(i64::from(counts.is_open()));
    }
}
