//! Semel as a [`tower::Layer`]: every POST and PATCH of an axum or hyper service happens once.
//!
//! ```
//! use axum::{Json, Router, http::StatusCode, routing::post};
//! use semel_sqlite::SqliteStore;
//! use semel_tower::{IdempotencyLayer, Operation};
//! use serde_json::{Value, json};
//!
//! async fn create_payment(operation: Operation, Json(command): Json<Value>) -> (StatusCode, Json<Value>) {
//!     // The same on every attempt, another one for every effect: for a provider that deduplicates.
//!     let charge = operation.downstream_key("charge");
//!     (StatusCode::CREATED, Json(json!({ "charge": charge, "amount": command["amount"] })))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("semel.db");
//! let store = SqliteStore::open(path).await?;
//! let app: Router = Router::new()
//!     .route("/payments", post(create_payment))
//!     .layer(IdempotencyLayer::new(store).tenant(|request| {
//!         Some(request.headers.get("x-account-id")?.to_str().ok()?.to_owned())
//!     }));
//! # let _ = app;
//! # Ok(()) }
//! ```
//!
//! The path of a request: `service.rs` reads it and spawns a task, the engine decides, `execute.rs` runs the handler and stores the
//! outcome, `responses.rs` builds the response. A client that hangs up does not cancel the work.
//!
//! - [`IdempotencyLayer`] is the configuration, and safe as [`new`](IdempotencyLayer::new) makes it.
//! - [`Protection`] is how one operation is protected: leases, windows, limits, what counts as the same request.
//! - [`Operation`] is what a handler extracts: the identity of the operation, and a way to state its outcome.
//! - `Operation::complete_with` (feature `sqlite`) and `Operation::complete_in` (feature `postgres`) put domain rows and completion
//!   into one commit.
//! - [`Operation::phases`] is for handlers with effects outside: recovery points, and one outside call at a time.
mod admission;
mod body;
mod body_key;
mod command_of;
mod context;
mod contract;
mod cross_origin;
mod execute;
mod fingerprinting;
pub mod grpc;
mod handler;
mod headers;
mod identification;
mod layer;
mod outcome;
mod protection;
mod published;
mod replay_check;
mod responses;
mod service;
mod state;
mod tenant;

/// Its transactions are in our signatures.
#[cfg(feature = "postgres")]
pub use sqlx;

pub use body::{Body, BodyBudget, BoxError};
pub use command_of::CommandOf;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use handler::CompleteError;
#[cfg(feature = "axum")]
pub use handler::NotProtected;
pub use handler::{Operation, PhasesError, Replayable, Reply};
pub use headers::{ATTEMPT, CannotKeep, KeptHeaders, OPERATION_ID, OUTCOME, RESOURCE, SCHEMA_VERSION};
pub use layer::{IdempotencyLayer, all_values};
pub use outcome::{NoOutcome, OutcomeClass, OutcomeRules};
pub use protection::{FormerName, InvalidProtection, KeyRequirement, Protection, ValidProtection};
pub use published::ContractService;
pub use replay_check::{ReplayCheck, ReplayCheckFuture, ReplayVerdict};
pub use service::Idempotency;
pub use state::Protected;
pub use tenant::{ByCredential, ShownCredential, Tenant, TenantClaim, TenantFuture, TenantSource};

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
