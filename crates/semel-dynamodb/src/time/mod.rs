//! What time it is: the service's, by the `Date` of its answers, as far as it is believed.

mod clock;
mod estimate;

pub(crate) use clock::{Looked, Moment, StoreClock, reason};
