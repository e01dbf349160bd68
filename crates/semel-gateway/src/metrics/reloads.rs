//! The metrics of reloads.

use super::registered;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

/// Counters of reloads, and when the configuration in force was loaded.
pub(super) struct ReloadMeters {
    applied: Counter,
    refused: Counter,
    loaded: Gauge<f64, AtomicU64>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfReload {
    result: &'static str,
}

impl ReloadMeters {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let reloads = registered(
            registry,
            "config_reloads",
            "Configuration reloads, by result: applied or refused",
            None,
            Family::<OfReload, Counter>::default(),
        );
        let loaded = registered(
            registry,
            "config_loaded_timestamp",
            "When the configuration in force was loaded",
            Some(Unit::Seconds),
            Gauge::default(),
        );
        let of = |result| reloads.get_or_create_owned(&OfReload { result });
        let meters = Self { applied: of("applied"), refused: of("refused"), loaded };
        meters.is_loaded();
        meters
    }

    pub(super) fn count(&self, applied: bool) {
        if applied {
            self.applied.inc();
            self.is_loaded();
        } else {
            self.refused.inc();
        }
    }

    fn is_loaded(&self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.loaded.set(now.as_secs_f64());
    }
}
