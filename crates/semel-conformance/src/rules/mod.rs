//! The rules, one file per area. Each is a function whose name is the sentence that must hold; [`suite!`](crate::suite) lists
//! them all.
#![allow(missing_docs, reason = "a rule's name says what holds")]

pub mod answers;
pub mod audit;
pub mod batches;
pub mod clock;
pub mod counting;
pub mod due;
pub mod expiry;
pub mod fencing;
pub mod fidelity;
pub mod find;
pub mod history;
pub mod holds;
pub mod key_format;
pub mod leases;
pub mod listing;
pub mod lost_acknowledgement;
pub mod purging;
pub mod races;
pub mod random_histories;
mod reference;
pub mod remembering;
pub mod reopen_after_kill;
pub mod replay;
pub mod reserve;
pub mod retry;
pub mod scopes;
pub mod unknown;
