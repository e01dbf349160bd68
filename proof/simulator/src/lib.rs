//! Years of faults in minutes: the production engine, batches, layer and workers in one thread, under virtual time. Everything that is left to chance
//! is drawn from one seed, and so a run that failed can be repeated from that number.
//!
//! - `world.rs` is who takes part: gateways (`gateway.rs`, `handler.rs`), `service.rs`, `provider.rs` with its ledger (`book.rs`), `client.rs`, `operator.rs`;
//! - [`store`] and `network.rs` are what is between them, [`Machine`] the clocks that they go by;
//! - [`Fault`] is what goes wrong, `faults.rs` how often it does in a run: on the way of a call or a message, or by itself (`chaos.rs`, `clocks.rs`);
//! - `audit.rs`, `steps.rs` and `invariants.rs` look at each write that the store commits, `check.rs` at everything in the end;
//! - [`run`] is one run, [`shrink`] makes a failing one smaller, [`timeline`] shows what happened to one operation of it.

mod audit;
mod book;
mod chaos;
mod check;
mod client;
mod clocks;
mod dice;
mod fault;
mod faults;
mod gateway;
mod handler;
mod invariants;
mod life;
mod lock;
mod log;
mod machine;
mod network;
mod operator;
mod plan;
mod process;
mod provider;
mod rules;
mod run;
#[cfg(test)]
mod scene;
mod service;
mod setup;
mod shrink;
mod sometimes;
mod steps;
pub mod store;
mod timeline;
mod trace;
mod world;

pub use dice::Dice;
pub use fault::{Fault, Struck};
pub use machine::Machine;
pub use run::{Counts, Report, run};
pub use setup::Setup;
pub use shrink::{Shrunk, again, shrink};
pub use timeline::timeline;
