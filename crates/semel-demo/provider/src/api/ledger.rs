//! Looking into the ledger. What is shown is on disk.

use super::answer::ApiError;
use crate::book::{Deeds, Summary};
use crate::entry::{self, Entry};
use crate::state::ProviderState;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Entries in one answer at most.
const LONGEST: usize = 1000;

#[derive(Deserialize)]
pub(super) struct Page {
    #[serde(default)]
    after: u64,
    #[serde(default = "longest")]
    limit: usize,
}

fn longest() -> usize {
    LONGEST
}

#[derive(Serialize)]
pub(super) struct Entries {
    #[serde(serialize_with = "entry::shared")]
    entries: Vec<Arc<Entry>>,
    /// What to ask for next with `after`; none at the end.
    next: Option<u64>,
}

pub(super) async fn list(
    State(shared): State<Arc<ProviderState>>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Entries>, ApiError> {
    let Query(Page { after, limit }) = page?;
    let listed = shared.ledger.decide(|book, _| {
        let rest = book.after(after);
        let entries = &rest[..limit.clamp(1, LONGEST).min(rest.len())];
        let next = entries.last().filter(|_| entries.len() < rest.len()).map(|last| last.sequence);
        Entries { entries: entries.to_vec(), next }
    });
    Ok(Json(listed.await?))
}

pub(super) async fn summary(State(shared): State<Arc<ProviderState>>) -> Result<Json<Summary>, ApiError> {
    Ok(Json(shared.ledger.decide(|book, _| book.summary()).await?))
}

pub(super) async fn by_identity(
    State(shared): State<Arc<ProviderState>>,
    identity: Result<Path<String>, PathRejection>,
) -> Result<Json<Deeds>, ApiError> {
    let Path(identity) = identity?;
    Ok(Json(shared.ledger.decide(|book, _| book.deeds(&identity, LONGEST)).await?))
}
