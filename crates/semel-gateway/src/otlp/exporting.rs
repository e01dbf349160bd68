//! Exports what requests leave in a queue, and what is counted, beside everything else.
//!
//! Requests never wait for it: what does not fit into the queue is dropped, and counted.

use super::ExportSource;
use super::collector::{Collector, NotExported};
use super::encoding::Resource;
use super::metrics_encoding::Period;
use super::span::{Ended, export, nanoseconds};
use crate::metrics::TelemetryMeters;
use arc_swap::ArcSwap;
use bytes::Bytes;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

/// Requests that wait to be exported at most: some megabytes.
pub(super) const WAITING: usize = 4096;

/// Requests per export.
const BATCH: usize = 512;

/// How long the first of a batch waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// After a failure: so often is it tried again, after pauses that double.
const RETRIES: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Everything that is exported.
pub(super) struct Exporting {
    pub(super) resource: Resource,
    pub(super) telling: Arc<ArcSwap<ExportSource>>,
    pub(super) ended: mpsc::Receiver<Ended>,
    pub(super) traces: Collector,
    pub(super) metrics: Option<MetricsExport>,
    pub(super) meters: TelemetryMeters,
}

pub(super) struct MetricsExport {
    pub(super) collector: Collector,
    pub(super) every: Duration,
    pub(super) telling: Arc<ArcSwap<ExportSource>>,
}

impl Exporting {
    /// Exports until `stop`; then once more what there is, for no longer than `stop` says.
    pub(super) async fn run(self, stop: impl Future<Output = Duration>) {
        let (stopping, stopped) = watch::channel(());
        let Self { resource, telling, ended, traces, metrics, meters } = self;
        let spans = Spans {
            resource: &resource,
            telling,
            ended,
            collector: traces,
            meters,
            trouble: Trouble::default(),
        };
        let numbers = async {
            if let Some(metrics) = metrics {
                metrics.run(&resource, stopped.clone()).await;
            }
        };
        let mut both = pin!(async { tokio::join!(spans.run(stopped.clone()), numbers) });
        let patience = tokio::select! {
            _ = &mut both => return,
            patience = stop => patience,
        };
        drop(stopping);
        if timeout(patience, both).await.is_err() {
            tracing::warn!("the last telemetry was not exported in time");
        }
    }
}

struct Spans<'a> {
    resource: &'a Resource,
    telling: Arc<ArcSwap<ExportSource>>,
    ended: mpsc::Receiver<Ended>,
    collector: Collector,
    meters: TelemetryMeters,
    trouble: Trouble,
}

impl Spans<'_> {
    async fn run(mut self, mut stopped: watch::Receiver<()>) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.gather(&mut batch, &mut stopped).await {
            self.export(&mut batch, &mut stopped).await;
        }
        self.ended.close();
        loop {
            self.ended.recv_many(&mut batch, BATCH).await;
            if batch.is_empty() {
                return;
            }
            self.export(&mut batch, &mut stopped).await;
        }
    }

    /// Waits for a batch; `false` once it is to stop.
    async fn gather(&mut self, batch: &mut Vec<Ended>, stopped: &mut watch::Receiver<()>) -> bool {
        let mut until = None;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            tokio::select! {
                biased;
                _ = stopped.changed() => return false,
                came = self.ended.recv_many(batch, room) => {
                    if came == 0 {
                        return false;
                    }
                    until.get_or_insert_with(|| Instant::now() + GATHER);
                }
                () = until_then(until) => return true,
            }
        }
        true
    }

    async fn export(&mut self, batch: &mut Vec<Ended>, stopped: &mut watch::Receiver<()>) {
        let count = batch.len() as u64;
        let body = Bytes::from(export(self.resource, &self.telling.load().names, batch));
        batch.clear();
        let mut pause = FIRST_PAUSE;
        let mut retries = RETRIES;
        let exported = loop {
            match self.collector.export(body.clone()).await {
                Err(NotExported::Unavailable(error)) if retries > 0 => {
                    self.trouble.tell(&error);
                    // Whoever is about to stop has no time for pauses.
                    tokio::select! {
                        biased;
                        _ = stopped.changed() => retries = 0,
                        () = sleep(pause) => retries -= 1,
                    }
                    pause *= 2;
                }
                exported => break exported,
            }
        };
        self.trouble.after(&exported);
        self.meters.spans(exported.is_ok(), count);
    }
}

async fn until_then(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl MetricsExport {
    async fn run(self, resource: &Resource, mut stopped: watch::Receiver<()>) {
        let start = nanoseconds(SystemTime::now());
        let mut trouble = Trouble::default();
        loop {
            let last = tokio::select! {
                biased;
                _ = stopped.changed() => true,
                () = sleep(self.every) => false,
            };
            let text = self.telling.load_full().snapshot.text().await;
            let period = Period { start, now: nanoseconds(SystemTime::now()) };
            // Numbers that are late are replaced by the next ones: there is nothing to try again.
            let exported = self.collector.export(resource.metrics(&text, period).into()).await;
            trouble.after(&exported);
            if last {
                return;
            }
        }
    }
}

/// Tells of trouble once, when it begins, and of its end.
#[derive(Default)]
struct Trouble(bool);

impl Trouble {
    fn tell(&mut self, error: &str) {
        if !std::mem::replace(&mut self.0, true) {
            tracing::warn!(error, "cannot export telemetry, retrying; requests are not affected");
        }
    }

    fn after(&mut self, exported: &Result<(), NotExported>) {
        match exported {
            Err(error) => self.tell(&error.to_string()),
            Ok(()) if std::mem::take(&mut self.0) => tracing::info!("telemetry is exported again"),
            Ok(()) => {}
        }
    }
}
