//! How effects are counted.

use crate::call::Call;
use http::HeaderName;
use semel_http::Endpoint;
use std::path::PathBuf;

/// How effects are counted.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Counter {
    /// By a request, to the API itself or to another address.
    Http { at: Option<Endpoint>, call: Call, count_at: CountAt },
    /// By a command that prints the number.
    Command(String),
    /// By a file with one line per effect.
    Ledger(PathBuf),
}

/// Where an answer has the number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CountAt {
    /// A number, a text that is one, or an array whose length it is.
    Pointer(String),
    Header(HeaderName),
}

impl std::fmt::Display for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http { at: None, call, .. } => write!(f, "by {call}"),
            Self::Http { at: Some(at), call, .. } => {
                write!(
                    f,
                    "by {} {}://{}{}",
                    call.method,
                    if at.is_https() { "https" } else { "http" },
                    at.authority(),
                    call.path
                )
            }
            // Not the command itself: it may have a password in it.
            Self::Command(_) => f.write_str("by --count-cmd"),
            Self::Ledger(file) => write!(f, "by the lines of {}", file.display()),
        }
    }
}
