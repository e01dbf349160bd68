//! `/metrics` and `/v1/stats`: what was counted, and what the store says is open.

use super::Shared;
use super::openapi::{Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use crate::headers::Accept;
use crate::identity::Identity;
use crate::metrics::{Open, OpenOperations, Taken, TextFormat};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue};
use semel::Access;
use semel_events::outbox;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Open operations, in total and by operation.
#[derive(Serialize, ToSchema)]
pub(super) struct Stats {
    /// The version of this program.
    version: &'static str,
    /// Operations that this process is executing.
    executing_here: usize,
    /// Whether all open operations were counted. If not, counts and ages are lower bounds.
    complete: bool,
    /// How many records cannot be read. They are not part of the other numbers.
    damaged: u64,
    /// By operation, with the labels of the metrics.
    operations: BTreeMap<String, OpenDocument>,
    #[serde(flatten)]
    total: OpenDocument,
    #[serde(skip_serializing_if = "Option::is_none")]
    outbox: Option<OutboxStats>,
}

/// Counts and ages of open operations.
#[derive(Serialize, ToSchema)]
#[schema(as = Open)]
struct OpenDocument {
    in_progress: u64,
    in_progress_oldest_seconds: f64,
    /// How many of them are dead letters.
    unknown: u64,
    unknown_oldest_seconds: f64,
    /// Operations that only an operator can settle.
    dead_letters: u64,
}

/// Events that are not published yet.
#[derive(Serialize, ToSchema)]
struct OutboxStats {
    backlog: u64,
    oldest_seconds: f64,
    dead_letters: u64,
}

/// All metrics, as Prometheus's classic text, or as OpenMetrics text if that is what `Accept` asks for.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "metrics",
    responses(
        (status = 200, description = "Metrics", content(
            (String = "text/plain; version=0.0.4; charset=utf-8"),
            (String = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        )),
        (status = 401, description = "The token is required from other machines", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 403, description = "Without a configured token only this machine may read metrics", body = ProblemDocument, content_type = "application/problem+json"),
    ),
    security((), ("token" = []))
)]
pub(super) async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let accept = Accept::parse(headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes));
    // `*/*` asks for neither.
    let format = match accept.quality("application", "openmetrics-text") > accept.quality("text", "plain") {
        true => TextFormat::OpenMetrics,
        false => TextFormat::Classic,
    };
    let text = format.of_rendered(shared.snapshot.text().await);
    ([(CONTENT_TYPE, format.content_type()), (VARY, "Accept")], text).into_response()
}

/// Counts of open operations, for operators without Prometheus.
#[utoipa::path(
    get, path = "/v1/stats", operation_id = "stats", tag = "metrics",
    responses((status = 200, description = "Open operations", body = Stats), Guarded, StoreFailed),
    security(("token" = []))
)]
pub(super) async fn stats(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
) -> Result<Json<Stats>, AdminProblem> {
    let Taken { open, stats } = shared.open_operations(&identity).await;
    let open = open?;
    Ok(Json(Stats {
        version: env!("CARGO_PKG_VERSION"),
        executing_here: shared.admin.engine.in_flight(),
        complete: open.whole,
        damaged: open.damaged,
        operations: open.operations.iter().map(|(label, open)| (label.clone(), (*open).into())).collect(),
        total: open.total().into(),
        outbox: stats.map(OutboxStats::from),
    }))
}

impl Shared {
    /// Counts of the open operations that `identity` may see.
    pub(super) async fn open_operations(&self, identity: &Identity) -> Taken {
        if !identity.tenants.is_limited() {
            return self.snapshot.open(|taken| taken).await;
        }
        let (engine, metrics) = (&self.admin.engine, &self.admin.metrics);
        let taking = OpenOperations::take_of(
            engine.store(),
            |operation| metrics.label(operation),
            |record| identity.tenants.allow(&record.key.tenant),
        );
        let open = semel::bounded(Access::Read, engine.store_timeout(), taking).await.map(Arc::new);
        // Events have no tenant.
        Taken { open, stats: None }
    }
}

impl From<Open> for OpenDocument {
    fn from(open: Open) -> Self {
        Self {
            in_progress: open.in_progress,
            in_progress_oldest_seconds: open.in_progress_oldest.as_secs_f64(),
            unknown: open.unknown,
            unknown_oldest_seconds: open.unknown_oldest.as_secs_f64(),
            dead_letters: open.dead_letters,
        }
    }
}

impl From<outbox::OutboxStats> for OutboxStats {
    fn from(stats: outbox::OutboxStats) -> Self {
        Self {
            backlog: stats.backlog,
            oldest_seconds: stats.oldest.as_secs_f64(),
            dead_letters: stats.dead_letters,
        }
    }
}
