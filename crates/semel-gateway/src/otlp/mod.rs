//! Traces of requests, and the metrics, over OTLP.
//!
//! - `context.rs`: whose trace a request belongs to (W3C trace context);
//! - `span.rs`: what is told of a request;
//! - `exporting.rs`, `collector.rs`: how it gets out, without any request waiting for it;
//! - `encoding.rs`, `metrics_encoding.rs`, `openmetrics.rs`: the protocol.
//!
//! Without `[telemetry]` nothing of this is on a request's way.

mod collector;
mod context;
mod encoding;
mod exporting;
mod metrics_encoding;
mod openmetrics;
mod span;

pub(crate) use span::Names;

use crate::config::TelemetryConfig;
use crate::metrics::{MetricsSnapshot, TelemetryMeters};
use arc_swap::ArcSwap;
use collector::Collector;
use context::Context;
use encoding::Resource;
use exporting::{Exporting, MetricsExport, WAITING};
use http::request::Parts;
use http::{Method, StatusCode};
use semel::trace::Trace;
use semel_http::tls::TlsError;
use semel_http::{Client, Options, Resend};
use span::{Ended, shortened};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// How long the end of a process may be put off for the last telemetry.
const FAREWELL: Duration = Duration::from_secs(5);

/// The same where it was told to end at once.
const SHORT_FAREWELL: Duration = Duration::from_millis(500);

/// What is told of the configuration in force.
pub(crate) struct ExportSource {
    pub(crate) names: Names,
    pub(crate) snapshot: MetricsSnapshot,
}

/// The telemetry of one process.
pub(crate) struct Telemetry {
    /// Traces the requests, until it is taken.
    pub(crate) tracing: Tracing,
    exporting: Exporting,
}

impl Telemetry {
    pub(crate) fn new(
        config: &TelemetryConfig,
        telling: Arc<ArcSwap<ExportSource>>,
        meters: TelemetryMeters,
    ) -> Result<Self, TlsError> {
        let (queue, ended) = mpsc::channel(WAITING);
        // A collector that gets a batch twice drops it, or counts it twice: better than not at all.
        let options = Options { resend: Resend::Once, ..Options::default() };
        let client = Client::new(&config.otlp, config.tls.clone(), options)?;
        let to = |signal| Collector::new(client.clone(), &config.otlp, signal, &config.headers);
        let metrics = config.metrics_every.map(|every| MetricsExport {
            collector: to("/v1/metrics"),
            every,
            telling: Arc::clone(&telling),
        });
        let resource =
            Resource { service_name: config.service_name.clone(), instance: Uuid::new_v4().to_string() };
        let exporting =
            Exporting { resource, telling, ended, traces: to("/v1/traces"), metrics, meters: meters.clone() };
        Ok(Self { tracing: Tracing { queue, ratio: config.sampling, meters }, exporting })
    }

    /// Begins to export. What traces requests is handed out.
    pub(crate) fn start(self) -> (Tracing, Exporter) {
        let (stop, stopped) = oneshot::channel();
        // Whoever drops the exporter has no time to say for how long.
        let stopped = async { stopped.await.unwrap_or(SHORT_FAREWELL) };
        (self.tracing, Exporter { task: tokio::spawn(self.exporting.run(stopped)), stop })
    }
}

/// What exports, beside the requests.
pub(crate) struct Exporter {
    task: JoinHandle<()>,
    stop: oneshot::Sender<Duration>,
}

impl Exporter {
    /// Exports the last of it, within bounds.
    pub(crate) async fn end(self, at_once: bool) {
        let _gone = self.stop.send(if at_once { SHORT_FAREWELL } else { FAREWELL });
        let _ended = self.task.await;
    }
}

/// Traces requests.
pub(crate) struct Tracing {
    queue: mpsc::Sender<Ended>,
    ratio: f64,
    meters: TelemetryMeters,
}

impl Tracing {
    /// Begins to trace a request: passes its context on to the service. `None`: it is not sampled.
    pub(crate) fn begin(&self, parts: &mut Parts, scheme: &'static str) -> Option<Recording> {
        let context = Context::of(&parts.headers, self.ratio);
        // A trace that is not recorded goes through as it came.
        if context.sampled || context.parent.is_none() {
            context.pass_on(Ended::services(&context), &mut parts.headers);
        }
        context.sampled.then(|| Recording {
            context,
            started: SystemTime::now(),
            begun: Instant::now(),
            method: parts.method.clone(),
            scheme,
            path: shortened(parts.uri.path()),
            status: None,
            trace: Arc::default(),
            queue: self.queue.clone(),
            meters: self.meters.clone(),
        })
    }
}

/// A request that is being answered. Its span is told when this is dropped: with the answer, or when the client hangs up.
pub(crate) struct Recording {
    context: Context,
    started: SystemTime,
    begun: Instant,
    method: Method,
    scheme: &'static str,
    path: Box<str>,
    status: Option<u16>,
    trace: Arc<Trace>,
    queue: mpsc::Sender<Ended>,
    meters: TelemetryMeters,
}

impl Recording {
    /// What is noted of the request on its way.
    pub(crate) fn trace(&self) -> Arc<Trace> {
        Arc::clone(&self.trace)
    }

    /// There is an answer.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status.as_u16());
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let ended = Ended {
            context: self.context,
            started: self.started,
            begun: self.begun,
            took: self.begun.elapsed(),
            method: std::mem::take(&mut self.method),
            scheme: self.scheme,
            path: std::mem::take(&mut self.path),
            status: self.status,
            noted: self.trace.noted(),
        };
        if self.queue.try_send(ended).is_err() {
            self.meters.spans(false, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use http::HeaderMap;

    #[test]
    fn what_does_not_fit_into_the_queue_is_dropped_and_counted() {
        let metrics = Metrics::new([]).with_telemetry();
        let (queue, mut ended) = mpsc::channel(2);
        for number in 0..5 {
            drop(Recording {
                context: Context::of(&HeaderMap::new(), 1.0),
                started: SystemTime::now(),
                begun: Instant::now(),
                method: Method::POST,
                scheme: "http",
                path: "/payments".into(),
                status: Some(200 + number),
                trace: Arc::default(),
                queue: queue.clone(),
                meters: metrics.telemetry().unwrap(),
            });
        }
        let dropped = "\napi_idempotency_traced_requests_total{result=\"dropped\"} 3\n";
        assert!(metrics.render().contains(dropped), "{}", metrics.render());
        let kept = [ended.try_recv().unwrap().status, ended.try_recv().unwrap().status];
        assert_eq!(kept, [Some(200), Some(201)]);
    }
}
