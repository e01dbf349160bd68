//! Shows over real sockets, on a real SQLite file, that every write happens once: in races, when clients hang up, when the store
//! fails before or after the work, and that clients are told exactly what became of their request.
//!
//! Effects are counted where they happen, and every race is held at a gate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

mod commands;
mod contract;
mod costs;
mod cross_origin;
mod deploys;
mod doubts;
mod grpc;
mod hanging_up;
mod hyper_service;
mod keys;
mod lateness;
mod operation;
mod outcomes;
mod phases;
mod profiles;
mod races;
mod replay;
mod replay_check;
mod same_transaction;
mod scope;
mod sealing;
mod sizes;
mod store_failing;
mod windows;
