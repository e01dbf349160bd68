//! The DynamoDB store of Semel: any number of instances on one table.
//!
//! - **One item per record**, with its history inside: a create, a swap and a removal are single conditional writes.
//! - **Every write carries a random write id.** A write whose answer is lost is looked for by it, and a condition that does not hold counts
//!   as done only if what is there is that very write.
//! - **No retries below the store**: a second try that is refused would hide that the first was done.
//! - **Indexes are hints**: whatever they say is read again, consistently, before anything is decided by it.
//! - **Time is the service's**, by the `Date` of its answers and CLOCK_BOOTTIME, as an interval: windows are stamped from its end and judged
//!   by its beginning.
//!
//! What a failure means: [`Unavailable`](semel::StoreError::Unavailable) is returned only if nothing was written: the service refused the
//! request (throttling too), or nothing was sent. After a time-out, a broken connection or a 5xx the error is
//! [`Lost`](semel::StoreError::Lost), unless the write could be read back.

mod address;
mod apart;
mod api;
mod audit;
mod aws;
mod ending;
mod error;
mod index;
mod item;
mod known_pointers;
mod listing;
mod mark;
mod names;
mod options;
mod parts;
mod pointers;
mod remembered;
mod requests;
mod same_transaction;
mod store;
mod table;
mod time;
mod together;
mod value;
mod write;

pub use address::Address;
pub use aws::{Credentials, CredentialsError};
pub use error::{CommitError, OpenError, UrlError};
pub use options::DynamoOptions;
pub use store::DynamoStore;
pub use table::Migrated;

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
