//! Redis in front of a durable store: a cache of final answers and a guard against retry storms, never the memory.
//!
//! [`Tiered`] is a [`Store`](semel::Store) around any other one. Retries of an operation that has ended are answered from Redis, and so are, for
//! two seconds at a time, duplicates of one that is in progress. **The right to execute comes from the durable store alone**: whatever
//! Redis says, a record is created, taken over or ended only by a conditional write there. A Redis that is empty, slow, down or full
//! costs speed; one that lies or that an attacker writes to can make the tier ask the store, and can hold a duplicate off for two seconds.
//!
//! ```no_run
//! use semel::{Engine, MemoryStore};
//! use semel_redis::{RedisUrl, Tiered};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let redis: RedisUrl = "redis://127.0.0.1".parse()?;
//! // In earnest this is a `PgStore` or a `SqliteStore`.
//! let engine = Engine::new(Tiered::new(MemoryStore::new(), redis));
//! # Ok(()) }
//! ```
//!
//! # What a crash leaves
//! Everything in Redis is written after the store has committed what it says, so each step can be lost, late or done twice:
//!
//! | written to Redis | after the store has | crash before | crash after |
//! |---|---|---|---|
//! | guard | reserved, or found in progress | duplicates ask the store | a guard without an owner at work: 409 for 2 s at most, as while the lease runs |
//! | entry | ended, or found ended | retries ask the store, and write it then | retries are answered from it |
//! | marker, short | released, doubted or removed | the guard holds duplicates off for what is left of its 2 s | the guard is gone, and late ones are refused |
//! | marker, long | taken an operator's word that leaves no answer | as above: no entry of that operation ever existed | nothing of the operation is believed or written before every entry is too old |
//!
//! Why an old entry cannot change an outcome: what has ended stays as it ended until its window is over. No act of the state machine, no
//! operator's included, changes a final record within its window, except that the same answer is sealed by another key. So an entry is true or its
//! window is over, and that is judged by the store's time. The page `docs/decisions/redis-tier.md` goes through the interleavings.

mod connection;
mod counts;
mod entry;
mod judge;
mod known;
mod link;
mod options;
mod recent_time;
mod secret;
mod store;
mod tiered;
mod trouble;
mod url;

pub use counts::{Counts, Refused};
pub use options::{InvalidOptions, TierOptions};
pub use tiered::Tiered;
pub use trouble::Trouble;
pub use url::{InvalidUrl, RedisUrl};

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
