//! A payment service whose payments happen once, however often they are asked for.
//!
//! The way of a payment:
//! 1. [`IdempotencyLayer`] answers retries and duplicates, and lets through what is to be executed (`service.rs`);
//! 2. the handler checks the command (`api.rs`, `payment.rs`);
//! 3. the payment's row and the answer that retries will get are written in **one** commit (`api.rs`, `database.rs`).
//!
//! Two things keep a payment from happening twice, and they are not the same. The `Idempotency-Key` recognises a *request* that
//! comes again. The merchant's reference recognises a *payment* that was made already, even if the client has lost its key
//! and comes with a new one.
//!
//! [`IdempotencyLayer`]: semel_tower::IdempotencyLayer

mod account;
mod api;
mod database;
mod demo;
mod error;
mod payment;
mod service;

pub use database::DatabaseError;
pub use demo::{DELAY, HOLD};
pub use service::{PaymentsOptions, PaymentsService, StartError};
