//! The outbox: what happened, told to others at least once, in order per aggregate.
//!
//! An application appends events in the transaction in which they happen (`postgres::append`, `sqlite::append`): domain rows,
//! the operation's outcome and the events are one commit. A [`Publisher`] takes them to a [`Sink`](crate::sink::Sink) and removes
//! what the receiver has confirmed.
//!
//! - **A queue, not a cursor.** What is pending is selected, never "everything after the last one seen": a transaction that
//!   commits late is not skipped.
//! - **In order per aggregate.** Appending locks the aggregate until the transaction ends, so that the order of the rows is the
//!   order of the commits; and no two events of an aggregate are under way at a time.
//! - **Shared.** Aggregates fall into [`LANES`] lanes. Each is held by one publisher, by a lease in the store's time; the lanes of
//!   one that died go to the others.
//! - **One bad event stops its aggregate alone.** It is parked, tried again later and later, and becomes a dead letter, which an
//!   operator sends on its way again ([`OutboxAdmin::requeue`]) or takes out ([`OutboxAdmin::discard`]).
//!
//! At least once means that an event may be published again: a publisher can be killed after the receiver's confirmation and before
//! its own note of it. Receivers know a repetition by the event's id.

mod admin;
mod counts;
mod delivery;
mod delivery_loop;
mod event;
mod holding;
mod lane;
mod options;
#[cfg(feature = "postgres")]
pub mod postgres;
mod publisher;
mod queue;
#[cfg(feature = "sqlite")]
pub mod sqlite;

pub use admin::{Entry, EntryFilter, EntryPage, OutboxAdmin, OutboxStats, Touched};
pub use counts::Counts;
pub use event::InvalidEvent;
pub use lane::{LANES, Lane, Place};
pub use options::PublisherOptions;
pub use publisher::{Publisher, Wake};
pub use queue::{Batch, Beat, Pending, Queue, Refused, Settlement, Token};
