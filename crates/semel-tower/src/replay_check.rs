//! Whether a caller may still have the answer that was stored for it.
//!
//! A tenant says whose operation it is. It does not say that the credential still counts: one that was revoked finds the operation as before.
//! The service, which would refuse it, is not asked for a replay. A [`ReplayCheck`] is.

use crate::body::Body;
use crate::state::LayerState;
use http::request::Parts;
use http::{HeaderValue, Response};
use semel::Decision;
use semel::catch_panic::catch_panic;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

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
    /// Nobody can say at the moment: 503, and the same request can be sent again.
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

impl LayerState {
    /// What a caller gets in place of a replay that it may not have; `None` where nothing keeps it from what was decided.
    pub(crate) async fn withheld(
        &self,
        decision: &Decision,
        request: &Parts,
        patience: Duration,
    ) -> Option<Response<Body>> {
        let check: &Arc<dyn ReplayCheck> = self.replay_check.as_ref()?;
        if !matches!(decision, Decision::Replay(_) | Decision::NotStored(_)) {
            return None;
        }
        let checking = tokio::time::timeout(patience, catch_panic(async { check.check(request).await }));
        match checking.await {
            Ok(Ok(ReplayVerdict::Allowed)) => None,
            Ok(Ok(ReplayVerdict::Refused { challenges })) => Some(self.replay_refused(challenges)),
            Ok(Ok(ReplayVerdict::Undecided)) => Some(self.replay_undecided()),
            Ok(Err(_)) => {
                tracing::error!("the replay check panicked; nothing was replayed");
                Some(self.replay_undecided())
            }
            Err(_) => {
                tracing::error!("the replay check took too long; nothing was replayed");
                Some(self.replay_undecided())
            }
        }
    }
}
