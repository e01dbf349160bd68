//! `/v1/clock`: what time it is by the store, whether that is trusted, and an operator's word that it is right.

use super::Shared;
use super::document::Moment;
use super::openapi::Guarded;
use super::problem::{AdminProblem, ProblemDocument};
use crate::acts::Operator;
use axum::extract::State;
use axum::{Extension, Json};
use semel::audit::{AuditAction, AuditResult};
use semel::clock::{ClockReport, ClockRequest};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The store's clock.
#[derive(Serialize, ToSchema)]
#[schema(as = Clock)]
pub(super) struct ClockDocument {
    /// Whether a clock hold is open: the clock jumped ahead and is not trusted. Nothing is purged meanwhile.
    held: bool,
    /// The earliest possible time; windows are judged by it.
    earliest: Moment,
    /// The latest possible time; windows are stamped from it.
    latest: Moment,
    /// The clock's own reading.
    claimed: Moment,
    /// By how many seconds the two times differ.
    hold_seconds: u64,
    /// The setting `clock.trust`: `kernel` or `always`.
    trust: &'static str,
    /// A jump of more seconds than this opens a hold.
    max_step_seconds: u64,
    /// How many seconds the kernel has to report a synchronised clock before a hold ends by itself.
    hold_ends_after_seconds: u64,
    /// Whether the kernel reports a synchronised clock; absent where it cannot tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    synchronised: Option<bool>,
    /// For how many seconds without a break it has reported that during this hold.
    synchronised_for_seconds: u64,
    /// Why this instance serves nothing: its clock is far from the time of other instances.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrong: Option<String>,
}

impl From<ClockReport> for ClockDocument {
    fn from(report: ClockReport) -> Self {
        Self {
            held: report.is_held(),
            earliest: report.earliest.into(),
            latest: report.latest.into(),
            claimed: report.claimed.into(),
            hold_seconds: report.latest.after(report.earliest).as_secs(),
            trust: report.terms.trust.as_str(),
            max_step_seconds: report.terms.max_step.as_secs(),
            hold_ends_after_seconds: report.terms.hold.as_secs(),
            synchronised: report.synchronised,
            synchronised_for_seconds: report.synchronised_for.as_secs(),
            wrong: report.wrong,
        }
    }
}

/// Shows the store's time, and whether the clock is trusted.
#[utoipa::path(
    get, path = "/v1/clock", operation_id = "clock", tag = "probes",
    responses((status = 200, description = "The store's clock", body = ClockDocument), Guarded),
    security(("token" = []))
)]
pub(super) async fn show(State(shared): State<Arc<Shared>>) -> Result<Json<ClockDocument>, AdminProblem> {
    asked(&shared, ClockRequest::Look).await
}

/// Ends a clock hold: the operator confirms that the clock is right. Without a hold it changes nothing.
#[utoipa::path(
    post, path = "/v1/clock/accept", operation_id = "accept_clock", tag = "probes",
    responses(
        (status = 200, description = "No clock hold is open", body = ClockDocument),
        (status = 503, description = "The store is unavailable, or this instance's own clock is wrong", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded,
    ),
    security(("token" = []))
)]
pub(super) async fn accept(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
) -> Result<Json<ClockDocument>, AdminProblem> {
    // While the clock of this instance is wrong, its store writes nothing, and so no audit. That must not keep an operator from putting it right.
    let mut entry = shared.acts.entry(&operator, AuditAction::AcceptClock);
    entry.result = AuditResult::Begun;
    let begun = shared.acts.note(entry).await;
    let accepted = asked(&shared, ClockRequest::Accept).await?;
    if begun.is_err() {
        shared.acts.note(shared.acts.entry(&operator, AuditAction::AcceptClock)).await?;
    }
    tracing::warn!("an operator accepted the clock");
    Ok(accepted)
}

async fn asked(shared: &Shared, request: ClockRequest) -> Result<Json<ClockDocument>, AdminProblem> {
    let report = shared.admin.engine.store().clock(request).await?;
    Ok(Json(report.into()))
}
