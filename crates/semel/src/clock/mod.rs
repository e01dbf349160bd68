//! Which time a store believes: stamp late, judge early.
//!
//! A clock that jumps ahead would end windows that still run, and a key would execute again. So a store's time is an interval
//! ([`Now`](crate::Now)): *earliest* is the last trusted mark plus the time that has passed by a steady clock, *latest* is what the clock
//! claims. They differ while a **clock hold** is open, and then nothing is purged or dropped.
//!
//! - [`Keeper`] decides, for every store: pure, without a clock or a database of its own.
//! - [`Mark`] is what a store keeps of it, one row that all instances read with every statement.
//! - [`beside`] tells an application's own transaction beside the store what time to stamp.
//! - [`Clock`] is where the readings come from.
//!
//! docs/decisions/clock.md says why, and what a crash at each step leaves.

mod beside;
mod keeper;
mod mark;
#[cfg(feature = "std")]
mod messages;
#[cfg(feature = "std")]
mod report;
#[cfg(feature = "std")]
mod system;
#[cfg(test)]
mod tests;

pub use beside::beside;
pub use keeper::{Keeper, Readings, Told, Turn, Wrong};
pub use mark::{Mark, Terms, Trust};
#[cfg(feature = "std")]
#[doc(hidden)]
pub use messages::Source;
#[cfg(feature = "std")]
pub use report::{ClockReport, ClockRequest};
#[cfg(feature = "std")]
pub use system::{Clock, SystemClock};
