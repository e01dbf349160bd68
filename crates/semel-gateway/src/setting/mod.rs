//! Values as people write them in the configuration: durations and sizes, and what is wrong with one.

mod invalid;
mod units;

pub use invalid::InvalidValue;
pub(crate) use units::{duration, duration_in_words, size};
pub use units::{show_duration, show_size};
