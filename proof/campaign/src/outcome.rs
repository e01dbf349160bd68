//! What everything here comes to that can fail.

use std::error::Error;

/// A value, or an error for the log.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
