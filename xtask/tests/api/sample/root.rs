//! A crate whose public API is known.

mod inner;
pub mod open {
    pub const LIMIT: usize = 3;
    pub(crate) fn hidden() {}
    pub use super::inner::Deep as Renamed;
}

pub use inner::{Choice, Shown, Speaks};
#[cfg(feature = "extra")]
pub use std::time::Duration;

struct Private;

/// Its documentation is not part of it.
pub fn make<T>(name: &str, times: impl Fn(T) -> bool) -> Shown
where
    T: Clone,
{
    inner::make(name, times)
}
