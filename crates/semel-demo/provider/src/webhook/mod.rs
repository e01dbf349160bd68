//! Telling outcomes to whoever listens, by Standard Webhooks messages.
//!
//! The ledger drives it, and not the handlers: what is on disk and owed is delivered, whether or not the client of that request is
//! still there, in this process or in the next one. At least once, therefore, and under the same `webhook-id` each time.

mod client;
mod delivery;
mod message;
mod schedule;

pub(crate) use delivery::deliver;
