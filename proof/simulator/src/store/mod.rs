//! A store in memory that behaves as durable ones do, and as badly as the network and the machine between it and its callers.
//!
//! - [`Disk`] is what all instances share: the records, and what of them is durable (`contents.rs`, `log.rs`).
//! - [`SimulatedStore`] is one instance's connection, with the production's judge of clocks.
//! - `pauses.rs` knows what an instance's clocks cannot know, for the judgement.
//! - `weather.rs` is what happens to a call on its way.

mod connection;
mod contents;
mod disk;
mod key_format;
mod log;
mod pauses;
#[cfg(test)]
mod tests;
mod weather;

pub use connection::SimulatedStore;
pub use disk::Disk;
pub(crate) use disk::{Audit, Write};
pub(crate) use weather::{Cut, Link, Outage, Weather};
