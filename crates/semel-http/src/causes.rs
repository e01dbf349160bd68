//! Errors in one line.

use std::error::Error;

/// An error with its causes, separated by colons. A cause that the words before it end with already is left out.
///
/// ```
/// let error = std::io::Error::other("connection refused");
/// assert_eq!(semel_http::with_causes(&error), "connection refused");
/// ```
#[must_use]
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let said = source.to_string();
        if !words.ends_with(&said) {
            words = format!("{words}: {said}");
        }
        cause = source.source();
    }
    words
}
