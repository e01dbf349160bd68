//! The engine of Semel: retry anything, it happens once.
//!
//! For one (tenant, operation, key) at most one execution is in progress. Once it has ended, every retry gets its answer. A key that
//! returns with a different request is refused. If it cannot be known whether the work was done, the outcome is
//! [`Unknown`](State::Unknown) until there is evidence.
//!
//! HTTP services use it through the layer of `semel-tower`. Other code uses the [`Engine`]:
//!
//! ```
//! use semel::fingerprint::{Command, Recipe};
//! use semel::{Decision, Engine, Incoming, MemoryStore, Outcome, Policy, RecordKey};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::new(MemoryStore::new());
//! let recipe = Arc::new(Recipe::builder().command("create_payment/1").build()?);
//! let command = Command::new(recipe, None, &serde_json::json!({ "amount": "10.00", "currency": "EUR" }))?;
//! let incoming = || Incoming {
//!     key: RecordKey::new("acc_1", "create_payment", "0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11"),
//!     subject: &command,
//!     policy: Arc::new(Policy::default()),
//! };
//!
//! // The first request executes …
//! let Decision::Execute(ticket) = engine.begin(incoming()).await? else { unreachable!() };
//! ticket.finish(Outcome::Completed { response: None, resource: None }).await?;
//! // … and its retry never does.
//! assert!(matches!(engine.begin(incoming()).await?, Decision::NotStored(_)));
//! # Ok(()) }
//! ```
//!
//! Without the feature `std` (on by default) only the pure parts remain: [`Record`], [`Policy`] and [`transition`].
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod history;
mod identity;
mod policy;
mod record;
mod time;
pub mod transition;

pub mod clock;

#[cfg(feature = "std")]
pub mod audit;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod background;
#[cfg(feature = "std")]
mod boottime;
#[cfg(feature = "std")]
pub mod canonical;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod catch_panic;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod columns;
#[cfg(feature = "std")]
mod engine;
#[cfg(feature = "std")]
mod environment;
#[cfg(feature = "std")]
pub mod fingerprint;
#[cfg(feature = "std")]
pub mod headers;
#[cfg(feature = "std")]
pub mod key;
#[cfg(feature = "std")]
pub mod observe;
#[cfg(feature = "std")]
pub mod problem;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod protobuf;
#[cfg(feature = "std")]
pub mod seal;
#[cfg(feature = "std")]
mod store;
#[cfg(feature = "std")]
#[doc(hidden)]
pub mod trace;

pub use history::{Actor, Happening, HistoryEntry, HistoryLine};
pub use identity::{Fingerprint, KeyScope, MAX_TENANT, OperationId, Owner, RecipeId, RecordKey};
pub use policy::{Expired, InFlight, Policy, Settling, Stale, StoreResponse};
pub use record::{Body, Draft, DueKind, Expected, Origin, Record, Resource, State, StoredResponse, Times};
pub use time::{Now, Timestamp, When};

#[cfg(feature = "std")]
pub use engine::{
    Acted, AdvanceError, AtMostOnce, Audited, BeginError, Checkpoint, Decision, Deduplicated, Engine,
    EngineOptions, Entered, Finish, FinishError, Forecast, Found, Identity, Incoming, Inquiry, Interruption,
    KeysConverted, OperatorTerms, OutOfStep, Outcome, OutcomeWrites, PhaseError, Phases, Promise, Queryable,
    Quota, Quotas, Rate, Right, RightEnded, Settled, Step, Takeover, Ticket, downstream_key, queryable,
};
#[cfg(feature = "std")]
pub use environment::{Environment, Randomness};
#[cfg(feature = "std")]
#[doc(hidden)]
pub use store::DamageLog;
#[cfg(feature = "std")]
pub use store::{
    Access, Answer, Created, Cursor, DueQuery, Filter, KeyFormat, KeyFormatSet, LiveOperations, ManualClock,
    MemoryStore, Page, Purged, Respell, Store, StoreError, StoreFuture, StoreHandle, Swap, Swapped, bounded,
    cas, check_draft,
};

/// The README's example is a documentation test.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
