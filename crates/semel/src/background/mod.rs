//! What loops that run beside the requests share: how they back off and when they go on.

mod backoff;
mod pace;

pub use backoff::{exponential, spread};
pub use pace::{Next, Pace};
