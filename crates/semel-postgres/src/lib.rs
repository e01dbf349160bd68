//! The PostgreSQL store of Semel: any number of instances on one database, and completion in the application's own transaction.
//!
//! - **Batches**: one statement, one commit and one round trip for many requests. No statement reads before it inserts, and none is
//!   steered by errors.
//! - **Nothing waits for an application's open transaction**, and no two batches deadlock: what such a transaction holds is
//!   answered as locked, which means in progress.
//! - **Same transaction**: [`act_in`], [`commit_with`] and [`reserve_in`] join the application's own `sqlx` transaction;
//!   [`PgStore::once`] is the whole of a purely local operation in one commit.
//! - **Recovery points**: [`PgStore::phase`] is a local phase of an operation with effects outside.
//! - **Time is the server's**, and a standby decides nothing.
//! - **Durable**: `fsync=off` and `synchronous_commit=off` are refused, at the start and again in every statement that writes.
//! - **Failover**: all hosts of `postgres://h1,h2,h3/db` are asked for the primary. Whether commits outlive a failover is declared
//!   ([`PgOptions::replication`]), verified and watched.
//! - **Poolers in transaction mode** such as PgBouncer: [`PgOptions::without_prepared_statements`].
//!
//! What a failure means: [`Unavailable`](semel::StoreError::Unavailable) is returned only if nothing can have been written (no
//! connection was available, or the server answered with an error, which rolls back). If the connection broke while a statement
//! that writes was running, the error is [`Lost`](semel::StoreError::Lost), and the caller reads back.

mod audit;
mod call;
mod clock;
mod commit;
mod connections;
mod draft;
mod error;
/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod explain;
mod key;
mod key_format;
mod listing;
mod mark;
mod migration;
mod once;
mod open;
mod options;
mod phase;
mod plain;
mod primary;
mod read;
mod replication;
mod row;
mod same_transaction;
mod statements;
mod store;
mod text;
mod watch;
mod write;

/// The PostgreSQL driver, which appears in signatures.
pub use sqlx;

pub use audit::audit_in;
pub use connections::begin;
pub use error::{ActError, CommitError, OpenError};
pub use migration::{Migrated, Migration, migration_script, migrations};
pub use once::{Once, OnceError};
pub use options::PgOptions;
pub use replication::{Replication, Risk};
pub use same_transaction::{Reserved, act_in, commit_with, reserve_in};
pub use store::PgStore;
