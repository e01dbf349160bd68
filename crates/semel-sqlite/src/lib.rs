//! The embedded durable store of Semel: one SQLite file, group commit, and completion in the application's own transaction.
//!
//! - **Durable**: an answer is given after the commit is on disk (WAL, `synchronous=FULL`, read back at the start).
//! - **Group commit**: one writer thread commits everything that waits in one transaction with one sync. A lone request does
//!   not wait.
//! - **Readers never wait for the writer**, and several processes may share the file.
//! - **Same transaction**: domain tables may live in the same file; see [`SqliteStore::finish_with`],
//!   [`SqliteStore::transaction`], and [`act_in`] for an application's own connection.
//!
//! ```
//! use semel::transition::{Act, Claim, Reservation, Windows, reserve};
//! use semel::{Fingerprint, OperationId, Owner, Policy, RecipeId, RecordKey, State, Store};
//! use semel_sqlite::SqliteStore;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("semel.db");
//! let store = SqliteStore::open(path).await?;
//! store.transaction(|tx| tx.execute_batch("CREATE TABLE payments (id TEXT PRIMARY KEY)")).await?;
//!
//! let policy = Policy::default();
//! let reservation = Reservation {
//!     key: RecordKey::new("merchant-7", "create_payment", "a-key-of-the-client"),
//!     operation_id: OperationId::random(),
//!     fingerprint: Fingerprint([0; 32]),
//!     recipe: RecipeId([0; 16]),
//!     owner: Owner::random(),
//! };
//! let draft = reserve(reservation, &policy);
//! let claim = Claim::of(&draft);
//! store.create(vec![draft]).await?;
//!
//! // The payment and the operation's outcome: one commit. An owner that was fenced meanwhile leaves neither.
//! let windows = Windows::from(&policy);
//! let (_, record) = store
//!     .finish_with(claim, move |tx| {
//!         tx.execute("INSERT INTO payments VALUES ('pay_1')", [])?;
//!         Ok::<_, rusqlite::Error>(((), Act::Complete { response: None, resource: None, windows }))
//!     })
//!     .await?;
//! assert_eq!(record.map(|record| record.state), Some(State::Completed));
//! # Ok(())
//! # }
//! ```
//!
//! What a failure means: [`Unavailable`](semel::StoreError::Unavailable) is returned only if nothing can have been written
//! (lock held too long, disk full, file moved away); where a commit's sync failed, the answer is
//! [`Lost`](semel::StoreError::Lost), and the caller reads back.

mod audit;
mod clock;
mod connection;
mod error;
/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod explain;
mod exposure;
mod fence;
mod job;
mod key_format;
mod listing;
mod options;
mod phase;
mod reader;
mod row;
mod same_transaction;
mod schema;
mod statements;
mod stats;
mod store;
mod threads;
mod ticker;
mod transaction;
mod writer;

/// The SQLite driver, which appears in signatures.
pub use rusqlite;

pub use error::{ActError, OpenError, TransactionError};
pub use exposure::Exposure;
pub use options::SqliteOptions;
pub use same_transaction::{Reserved, act_in, moment_in, reserve_in, time_in};
pub use semel::clock::{Clock, SystemClock};
pub use stats::Stats;
pub use store::SqliteStore;
pub use transaction::Transaction;

/// The statements themselves, for measuring the store against the bare loop. No part of the API.
#[doc(hidden)]
pub mod sql {
    pub use crate::statements::{CLOCK, CREATE, KEEP_ANSWER, SET_CLOCK, SWAP};
}
