//! Who holds how much of what is limited: connections, and requests in flight.
//!
//! - `party.rs`: who a client is, when what it holds is counted;
//! - `shares.rs`: permits, given out so that no client takes them all.

mod party;
mod shares;

pub(crate) use party::Party;
pub(crate) use shares::{Holder, Permit, Refused, Shares};
