//! Semel as a [`tower::Layer`]: every POST and PATCH of an axum, hyper or tonic service happens once.
mod answer;
mod body;
mod execute;
mod headers;
mod layer;
mod operation;
mod outcome;
mod protection;
mod reply;
mod scope;
mod service;
#[cfg(feature = "sqlite")]
mod sqlite;

pub use body::{Body, BoxError};
pub use headers::{ATTEMPT, CannotKeep, KeptHeaders, OPERATION_ID, OUTCOME, RESOURCE, SCHEMA_VERSION};
pub use layer::{IdempotencyLayer, Protected};
#[cfg(feature = "axum")]
pub use operation::NotProtected;
pub use operation::Operation;
pub use outcome::{NoOutcome, OutcomeClass, OutcomeRules};
pub use protection::{InvalidProtection, KeyRequirement, Protection};
pub use reply::{Replayable, Reply};
pub use scope::Tenant;
pub use service::Idempotency;
#[cfg(feature = "sqlite")]
pub use sqlite::CompleteError;
