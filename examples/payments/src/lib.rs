//! A payment service whose payments happen once, however often they are asked for.
//!
//! The way of a payment:
//! 1. [`IdempotencyLayer`] answers retries and duplicates, and lets through what is to be executed (`service.rs`);
//! 2. the handler checks the command (`api/payments.rs`, `payment.rs`);
//! 3. its phases: the payment's row (`database/`), then the one call to the provider (`provider.rs`), each with a recovery point;
//! 4. the payment's end and the answer that retries will get are written in **one** commit (`database/`).
//!
//! If the provider does not answer, nobody knows what became of the payment. Then the provider is asked, or tells by itself
//! (`settling.rs`).
//!
//! With a broker, others are told: the event is written in the completing commit and published from there (`telling.rs`). A second
//! process takes it and books it: a ledger entry, a receipt by mail and word to a partner, once each (`bookkeeping/`).
//!
//! Without a provider there is nothing outside, and the whole payment is that one commit.
//!
//! Two things keep a payment from happening twice, and they are not the same. The `Idempotency-Key` recognises a *request* that
//! comes again. The merchant's reference recognises a *payment* that was made already, even if the client has lost its key
//! and comes with a new one.
//!
//! [`IdempotencyLayer`]: semel_tower::IdempotencyLayer

mod account;
mod api;
mod bookkeeping;
mod conclusion;
mod database;
mod demo;
mod error;
mod fail_point;
mod payment;
mod provider;
mod refund;
mod service;
mod settling;
mod telling;
mod verdict;

pub use bookkeeping::{BOOKKEEPING_FAIL_POINTS, Bookkeeping, BookkeepingOptions, PartnerOptions};
pub use database::DatabaseError;
pub use demo::{DELAY, HOLD, PROVIDER_MODE};
pub use fail_point::FAIL_POINTS;
pub use payment::Status;
pub use provider::{ProviderOptions, ProviderPromise};
pub use service::{PaymentsOptions, PaymentsService, StartError};
pub use settling::SettlingOptions;
