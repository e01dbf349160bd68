//! Whether a caller may still have the answer that was stored for it.
//!
//! A tenant says whose operation it is. It does not say that the credential still counts: one that was revoked finds the operation as before.
//! The service, which would refuse it, is not asked for a replay. A [`ReplayCheck`] is.

use http::HeaderValue;
use http::request::Parts;
use std::future::Future;
use std::pin::Pin;

/// Whether a caller may have a stored answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplayVerdict {
    /// It is sent.
    Allowed,
    /// 401, with these challenges as `WWW-Authenticate`.
    Refused {
        /// How to authenticate.
        challenges: Vec<HeaderValue>,
    },
    /// The authority cannot answer at the moment: 503, and the same request can be sent again.
    Undecided,
}

/// A verdict on its way.
pub type ReplayCheckFuture<'a> = Pin<Box<dyn Future<Output = ReplayVerdict> + Send + 'a>>;

/// Is asked before every replay, and before a client is told that an answer was not stored. Never before an execution: that is the service's
/// to refuse.
///
/// What panics, or takes longer than the operation's time-out, is [undecided](ReplayVerdict::Undecided).
pub trait ReplayCheck: Send + Sync {
    /// Whether the caller of this request may have the answer.
    fn check<'a>(&'a self, request: &'a Parts) -> ReplayCheckFuture<'a>;
}
