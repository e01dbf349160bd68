//! The metrics that operators watch, under the names that the documentation promises.
//!
//! Every operation of the configuration has its counters from the start, at zero: a series that appears with its first event
//! hides that event from `rate()`. Operations of a route without a name share its method and path pattern, and all others share the label `unconfigured`, whatever clients put into their
//! paths, so that the number of series is fixed by the configurations that the process has had.

mod cache;
mod classic;
mod logs;
mod open_operations;
mod outbox;
mod reloads;
mod snapshot;
mod telemetry;

pub use logs::count_dropped_log_lines;
pub use open_operations::{Open, OpenOperations};
pub(crate) use snapshot::{MetricsSnapshot, Taken};
pub(crate) use telemetry::TelemetryMeters;

use crate::route::{Route, Routes};
use crate::store::Risk;
use arc_swap::{ArcSwap, ArcSwapOption};
use cache::CacheMeters;
use outbox::OutboxMeters;
use reloads::ReloadMeters;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use semel::observe::{Event, Observer, StoreCall};
use semel_events::outbox::{Counts, OutboxStats};
use semel_worker::WebhookIntake;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The label of every operation that the configuration does not name.
pub const UNCONFIGURED: &str = "unconfigured";

/// In which text format metrics are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextFormat {
    /// Prometheus's own, version 0.0.4: what everything understands.
    Classic,
    /// OpenMetrics, version 1.0.0: what [`Metrics::render`] writes.
    OpenMetrics,
}

impl TextFormat {
    /// For the `Content-Type` field.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Metrics that [`Metrics::render`] wrote, in this format.
    #[must_use]
    pub fn of_rendered(self, text: String) -> String {
        match self {
            Self::Classic => classic::from_openmetrics(&text),
            Self::OpenMetrics => text,
        }
    }
}

/// From a replay out of memory to a service that is given up on.
const REQUEST_SECONDS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0];

/// From a read out of a cache to the time-out.
const STORE_SECONDS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0];

/// Up to as many as a call takes.
const BATCH_SIZE: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Counts and measures, and writes it all down for Prometheus.
///
/// Counting looks the operation's name up once and adds to an atomic: no lock, no allocation.
pub struct Metrics {
    registry: Registry,
    /// Those of the configuration in force, and of earlier ones: a counter that was there stays.
    operations: ArcSwap<HashMap<Box<str>, Arc<Meters>>>,
    /// By which operations that no route names find the label of theirs.
    routes: ArcSwapOption<Routes>,
    unconfigured: Meters,
    families: Families,
    /// By [`StoreCall::index`].
    store_calls: Vec<CallMeters>,
    gauges: Gauges,
    risk: Option<Risk>,
    webhooks: Family<OfWebhook, Counter>,
    outbox: Option<OutboxMeters>,
    cache: Option<CacheMeters>,
    reloads: ReloadMeters,
    telemetry: Option<TelemetryMeters>,
    last: snapshot::Last,
}

/// What an operation's meters are taken from.
struct Families {
    /// By [`Event::index`].
    counters: Vec<Family<OfOperation, Counter>>,
    requests: Family<OfOperation, Histogram, Buckets>,
}

/// What is kept of one operation.
struct Meters {
    /// By [`Event::index`].
    counters: Vec<Counter>,
    requests: Histogram,
}

/// What is kept of one kind of store call.
struct CallMeters {
    answered: Histogram,
    failed: Histogram,
    sizes: Histogram,
}

/// What the store says of itself when it is asked.
struct Gauges {
    in_progress_oldest: Family<OfOperation, Number>,
    unknown_oldest: Family<OfOperation, Number>,
    unknown: Family<OfOperation, Gauge>,
    dead_letters: Family<OfOperation, Gauge>,
    damaged: Number,
    clock_hold: Number,
    at_risk: Gauge,
}

/// A number with a fraction, or none at all.
type Number = Gauge<f64, AtomicU64>;

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfOperation {
    operation: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfCall {
    call: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfCallResult {
    call: &'static str,
    result: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct OfWebhook {
    source: String,
    result: &'static str,
}

#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl Metrics {
    /// Metrics of these operations; all others are counted together.
    pub fn new<'a>(operations: impl IntoIterator<Item = &'a str>) -> Self {
        let mut registry = Registry::with_prefix("api_idempotency");
        let counters: Vec<Family<OfOperation, Counter>> = Event::ALL
            .into_iter()
            .map(|event| registered(&mut registry, event.as_str(), meaning(event), None, Family::default()))
            .collect();
        let requests = registered(
            &mut registry,
            "request",
            "Time from the head of a protected request to the head of its answer",
            Some(Unit::Seconds),
            Family::<OfOperation, Histogram, Buckets>::new_with_constructor(Buckets(&REQUEST_SECONDS)),
        );
        let families = Families { counters, requests };
        logs::register(&mut registry);
        let metrics = Self {
            operations: ArcSwap::default(),
            routes: ArcSwapOption::empty(),
            unconfigured: families.meters(UNCONFIGURED),
            families,
            store_calls: call_meters(&mut registry),
            gauges: Gauges::new(&mut registry),
            risk: None,
            webhooks: registered(
                &mut registry,
                "webhooks",
                "Webhooks received, by result",
                None,
                Family::default(),
            ),
            outbox: None,
            cache: None,
            reloads: ReloadMeters::new(&mut registry),
            telemetry: None,
            last: snapshot::Last::default(),
            registry,
        };
        metrics.know(operations);
        metrics
    }

    /// Counts these operations under their names from now on, too.
    pub fn know<'a>(&self, operations: impl IntoIterator<Item = &'a str>) {
        let mut known = HashMap::clone(&self.operations.load());
        for name in operations {
            known.entry(name.into()).or_insert_with(|| Arc::new(self.families.meters(name)));
        }
        self.operations.store(Arc::new(known));
    }

    /// Counts the operations of these routes under their labels from now on, too.
    pub fn know_routes(&self, routes: &Routes) {
        self.know(routes.routes().iter().map(Route::label));
        self.routes.store(Some(Arc::new(routes.clone())));
    }

    /// Counts a reload: the new configuration is in force, or it was refused and the old one stays.
    pub fn count_reload(&self, applied: bool) {
        self.reloads.count(applied);
    }

    /// The same with the metrics of an outbox.
    #[must_use]
    pub fn with_outbox(mut self) -> Self {
        self.outbox = Some(OutboxMeters::new(&mut self.registry));
        self
    }

    /// The same with what the Redis in front of the store does.
    #[must_use]
    pub fn with_cache(mut self, counts: Arc<semel_redis::Counts>) -> Self {
        self.cache = Some(CacheMeters::new(&mut self.registry, counts));
        self
    }

    /// The same with what becomes of the traces.
    #[must_use]
    pub fn with_telemetry(mut self) -> Self {
        self.telemetry = Some(TelemetryMeters::new(&mut self.registry));
        self
    }

    /// The same with a store that knows whether a failover could lose what it acknowledges.
    #[must_use]
    pub fn with_risk(mut self, risk: Option<Risk>) -> Self {
        self.risk = risk;
        self
    }

    /// Who counts what becomes of the traces.
    pub(crate) fn telemetry(&self) -> Option<TelemetryMeters> {
        self.telemetry.clone()
    }

    /// By how much the store's clock claims to be ahead of the trusted time.
    pub fn set_clock_hold(&self, hold: Duration) {
        self.gauges.clock_hold.set(hold.as_secs_f64());
    }

    /// Sets the gauges of the outbox to what the store says; without its word they are no number.
    pub fn set_outbox_stats(&self, stats: Option<OutboxStats>) {
        if let Some(meters) = &self.outbox {
            meters.set_outbox_stats(stats);
        }
    }

    /// Sets the counters of the outbox to what the publisher of this process has counted.
    pub fn set_published(&self, counts: &Counts) {
        if let Some(meters) = &self.outbox {
            meters.set_published(counts);
        }
    }

    /// Everything, as Prometheus reads it: OpenMetrics text. [`TextFormat`] makes classic text of it.
    #[must_use]
    pub fn render(&self) -> String {
        if let Some(cache) = &self.cache {
            cache.read();
        }
        let mut text = String::new();
        // Writing to memory cannot fail; if it did, a scrape without its end is known for broken.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// The label that an operation is counted under.
    #[must_use]
    pub fn label(&self, operation: &str) -> String {
        let operations = self.operations.load();
        if operations.contains_key(operation) {
            return operation.to_owned();
        }
        let routes = self.routes.load();
        let label = routes.as_ref().map(|routes| routes.metric_label(operation));
        label.filter(|label| operations.contains_key(*label)).unwrap_or(UNCONFIGURED).to_owned()
    }

    /// Sets the gauges to what the store says. `None`, where it does not answer, takes them away: an old number that
    /// stands still would look like good news.
    pub fn set_gauges(&self, open: Option<&OpenOperations>) {
        self.gauges.clear();
        let at_risk = self.risk.as_ref().is_some_and(|risk| risk.reason().is_some());
        self.gauges.at_risk.set(at_risk.into());
        let Some(open) = open else { return };
        self.gauges.damaged.set(open.damaged as f64);
        let nothing = Open::default();
        for label in self.operations.load().keys().map(|name| &**name).chain([UNCONFIGURED]) {
            self.gauges.set(label, open.operations.get(label).unwrap_or(&nothing));
        }
    }

    /// Sets the counters of webhooks to what their intake has counted: sources are those of the configuration, and `unknown`.
    pub fn set_webhooks(&self, intake: &WebhookIntake) {
        for (source, result, count) in intake.counts() {
            let label = OfWebhook { source: source.to_owned(), result: result.as_str() };
            self.webhooks.get_or_create(&label).inner().store(count, Ordering::Relaxed);
        }
    }

    fn with_meters(&self, operation: &str, measure: impl FnOnce(&Meters)) {
        let operations = self.operations.load();
        if let Some(meters) = operations.get(operation) {
            return measure(meters);
        }
        let routes = self.routes.load();
        let label = routes.as_ref().map(|routes| routes.metric_label(operation));
        measure(label.and_then(|label| operations.get(label)).map_or(&self.unconfigured, |meters| &**meters));
    }
}

impl Families {
    fn meters(&self, operation: &str) -> Meters {
        let label = OfOperation { operation: operation.to_owned() };
        Meters {
            counters: self.counters.iter().map(|family| family.get_or_create_owned(&label)).collect(),
            requests: self.requests.get_or_create_owned(&label),
        }
    }
}

impl Observer for Metrics {
    fn count(&self, operation: &str, event: Event) {
        self.with_meters(operation, |meters| {
            if let Some(counter) = meters.counters.get(event.index()) {
                counter.inc();
            }
        });
    }

    fn request(&self, operation: &str, took: Duration) {
        self.with_meters(operation, |meters| meters.requests.observe(took.as_secs_f64()));
    }

    fn store_call(&self, call: StoreCall, took: Duration, answered: bool) {
        if let Some(meters) = self.store_calls.get(call.index()) {
            let histogram = if answered { &meters.answered } else { &meters.failed };
            histogram.observe(took.as_secs_f64());
        }
    }

    fn batch(&self, call: StoreCall, size: usize) {
        if let Some(meters) = self.store_calls.get(call.index()) {
            meters.sizes.observe(size as f64);
        }
    }
}

impl Gauges {
    fn new(registry: &mut Registry) -> Self {
        Self {
            in_progress_oldest: registered(
                registry,
                "in_progress_oldest",
                "Age of the oldest operation in progress; 0 without one",
                Some(Unit::Seconds),
                Family::default(),
            ),
            unknown_oldest: registered(
                registry,
                "unknown_oldest",
                "Age of the oldest operation whose outcome is unknown; 0 without one",
                Some(Unit::Seconds),
                Family::default(),
            ),
            unknown: registered(
                registry,
                "unknown",
                "Operations whose outcome is unknown, including dead letters",
                None,
                Family::default(),
            ),
            dead_letters: registered(
                registry,
                "dead_letters",
                "Operations whose outcome only an operator can settle",
                None,
                Family::default(),
            ),
            damaged: registered(
                registry,
                "damaged",
                "Open operations whose record cannot be read; NaN while the store does not answer",
                None,
                Number::default(),
            ),
            clock_hold: registered(
                registry,
                "clock_hold",
                "How far the store's clock is ahead of trusted time; above 0, nothing is purged",
                Some(Unit::Seconds),
                Number::default(),
            ),
            at_risk: registered(
                registry,
                "store_at_risk",
                "1 while a failover of the store could lose acknowledged outcomes; nothing new is reserved then",
                None,
                Gauge::default(),
            ),
        }
    }

    fn set(&self, label: &str, open: &Open) {
        let label = OfOperation { operation: label.to_owned() };
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.in_progress_oldest.get_or_create(&label).set(open.in_progress_oldest.as_secs_f64());
        self.unknown_oldest.get_or_create(&label).set(open.unknown_oldest.as_secs_f64());
        self.unknown.get_or_create(&label).set(whole(open.unknown));
        self.dead_letters.get_or_create(&label).set(whole(open.dead_letters));
    }

    fn clear(&self) {
        self.in_progress_oldest.clear();
        self.unknown_oldest.clear();
        self.unknown.clear();
        self.dead_letters.clear();
        self.damaged.set(f64::NAN);
    }
}

fn call_meters(registry: &mut Registry) -> Vec<CallMeters> {
    let seconds = registered(
        registry,
        "store",
        "Duration of store calls",
        Some(Unit::Seconds),
        Family::<OfCallResult, Histogram, Buckets>::new_with_constructor(Buckets(&STORE_SECONDS)),
    );
    let sizes = registered(
        registry,
        "batch_size",
        "Requests per batched store call",
        None,
        Family::<OfCall, Histogram, Buckets>::new_with_constructor(Buckets(&BATCH_SIZE)),
    );
    let meters = |call: StoreCall| {
        let call = call.as_str();
        CallMeters {
            answered: seconds.get_or_create_owned(&OfCallResult { call, result: "ok" }),
            failed: seconds.get_or_create_owned(&OfCallResult { call, result: "error" }),
            sizes: sizes.get_or_create_owned(&OfCall { call }),
        }
    };
    StoreCall::ALL.into_iter().map(meters).collect()
}

fn registered<M: prometheus_client::registry::Metric + Clone>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    metric: M,
) -> M {
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric.clone()),
        None => registry.register(name, help, metric.clone()),
    }
    metric
}

/// The help text of a counter.
fn meaning(event: Event) -> &'static str {
    match event {
        Event::ReserveCreated => "Requests that reserved a new operation and executed it",
        Event::ReserveReplay => "Requests answered with a stored response",
        Event::ReserveInProgress => "Requests refused because another one was executing the operation",
        Event::ReserveKeyMisuse => "Requests refused because their key belongs to a different request",
        Event::ReserveFailedRetry => {
            "Requests that executed an operation again after an attempt that did nothing"
        }
        Event::ReserveUnknown => "Requests answered that the outcome is unknown",
        Event::StoreError => "Requests and writes for which the store failed or timed out",
        Event::ZombieKey => "Leases that expired: operations found in progress without a live owner",
        Event::TtlPruned => "Records purged after their tombstone",
        Event::ReconcileScheduled => {
            "Outcomes that became unknown and are to be settled by a poll or a webhook"
        }
        Event::ReconcileResolved => "Unknown outcomes that evidence settled",
        Event::ReconcileFailed => "Unknown outcomes that became dead letters",
        Event::MissingKey => "Requests without a key where one is required or could be given",
        Event::QuotaRefused => "New keys that were refused because of a quota",
        Event::ExpiredRetry => "Requests whose key had expired",
        Event::CompletedWithoutResource => "Completions stored without the type and id of the resource",
        _ => "See the documentation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_make_labels() {
        let metrics = Metrics::new(["create_payment"]);
        let before = metrics.render().lines().count();
        for number in 0..1000 {
            metrics.count(&format!("POST /{number}"), Event::ReserveCreated);
            metrics.request(&format!("POST /{number}"), Duration::from_millis(1));
        }
        metrics.count("create_payment", Event::ReserveCreated);
        let text = metrics.render();
        assert_eq!(text.lines().count(), before);
        assert!(text.contains("\napi_idempotency_reserve_created_total{operation=\"unconfigured\"} 1000\n"));
        assert!(text.contains("\napi_idempotency_reserve_created_total{operation=\"create_payment\"} 1\n"));
    }

    #[test]
    fn operations_that_paths_name_are_counted_under_the_pattern_of_their_route() {
        let text = "upstream = \"http://127.0.0.1:9000\"\n[[route]]\nmatch = \"POST /**\"\n";
        let config = crate::Config::from_toml(text, std::path::Path::new("semel.toml")).unwrap();
        let metrics = Metrics::new([]);
        metrics.know_routes(&config.routes);
        metrics.count("POST /payments", Event::ReserveCreated);
        metrics.count("POST /refunds", Event::ReserveCreated);
        metrics.count("PATCH /refunds", Event::ReserveCreated);
        assert_eq!([metrics.label("POST /x"), metrics.label("PATCH /x")], ["POST /**", UNCONFIGURED]);
        let text = metrics.render();
        assert!(
            text.contains("\napi_idempotency_reserve_created_total{operation=\"POST /**\"} 2\n"),
            "{text}"
        );
        assert!(text.contains("\napi_idempotency_reserve_created_total{operation=\"unconfigured\"} 1\n"));
    }

    #[test]
    fn what_a_reload_brings_is_counted_by_name_and_what_was_counted_stays() {
        let metrics = Metrics::new(["create_payment"]);
        metrics.count("create_payment", Event::ReserveCreated);
        metrics.count("refund", Event::ReserveCreated);
        metrics.know(["refund"]);
        metrics.count("refund", Event::ReserveCreated);
        metrics.count_reload(true);
        let text = metrics.render();
        for line in [
            "api_idempotency_reserve_created_total{operation=\"create_payment\"} 1",
            "api_idempotency_reserve_created_total{operation=\"refund\"} 1",
            "api_idempotency_reserve_created_total{operation=\"unconfigured\"} 1",
            "api_idempotency_config_reloads_total{result=\"applied\"} 1",
            "api_idempotency_config_reloads_total{result=\"refused\"} 0",
        ] {
            assert!(text.lines().any(|told| told == line), "{line}: {text}");
        }
        assert!(text.contains("\napi_idempotency_config_loaded_timestamp_seconds "), "{text}");
    }

    #[test]
    fn every_event_has_a_help_text_of_its_own() {
        for event in Event::ALL {
            assert_ne!(meaning(event), "See the documentation", "{event:?}");
        }
    }

    #[test]
    fn gauges_are_there_while_the_store_answers_and_gone_while_it_does_not() {
        let metrics = Metrics::new(["create_payment"]);
        let gauge = "api_idempotency_unknown{operation=\"create_payment\"}";
        assert!(!metrics.render().contains(gauge));
        let open = Open { unknown: 3, ..Open::default() };
        let open =
            OpenOperations { operations: [("create_payment".into(), open)].into(), damaged: 0, whole: true };
        metrics.set_gauges(Some(&open));
        assert!(metrics.render().contains(&format!("{gauge} 3\n")));
        metrics.set_gauges(None);
        assert!(!metrics.render().contains(gauge));
    }
}
