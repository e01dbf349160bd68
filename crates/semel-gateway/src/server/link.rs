//! What a client's connection and the request on it know of each other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Whose connection a request came over: an extension of every request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// Shared by a connection's socket and the request that is worked on: HTTP/1.1 has one at a time.
#[derive(Clone, Default)]
pub(crate) struct Link(Arc<Shared>);

#[derive(Default)]
struct Shared {
    stage: AtomicU8,
    failure: AtomicU8,
}

/// No request is worked on.
const FREE: u8 = 0;
/// A request is worked on, and its client may go: it is nobody else's business.
const UNDER_WAY: u8 = 1;
/// A request with a key is worked on, which is to be executed even if its client goes.
const KEYED: u8 = 2;

/// Why a request's body did not come as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BodyFailure {
    /// It took too long.
    Late = 1,
    /// Its framing is wrong.
    Malformed = 2,
    /// It is longer than a body may be that is passed on.
    TooLong = 3,
}

impl Link {
    /// A request's work begins; it ends when what is returned is dropped.
    pub(super) fn begin(&self, has_key: bool) -> UnderWay {
        self.0.failure.store(0, Relaxed);
        self.0.stage.store(if has_key { KEYED } else { UNDER_WAY }, Relaxed);
        UnderWay(self.clone())
    }

    /// The request is passed on unprotected: whether its client is still there matters, and its body may take its time.
    pub(crate) fn pass_through(&self) {
        let _ = self.0.stage.compare_exchange(KEYED, UNDER_WAY, Relaxed, Relaxed);
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.stage.load(Relaxed) != FREE
    }

    /// Whether the request is to go on even if its client goes.
    pub(super) fn outlives_client(&self) -> bool {
        self.0.stage.load(Relaxed) == KEYED
    }

    pub(crate) fn fail(&self, failure: BodyFailure) {
        self.0.failure.store(failure as u8, Relaxed);
    }

    /// Why the body of the request at hand did not come as a whole, if it did not.
    pub(crate) fn failure(&self) -> Option<BodyFailure> {
        match self.0.failure.load(Relaxed) {
            1 => Some(BodyFailure::Late),
            2 => Some(BodyFailure::Malformed),
            3 => Some(BodyFailure::TooLong),
            _ => None,
        }
    }
}

/// A request is worked on, as long as this lives.
pub(crate) struct UnderWay(Link);

impl UnderWay {
    pub(crate) fn link(&self) -> &Link {
        &self.0
    }

    /// There is an answer: from now on only its sending is left, and that is pointless without a client.
    pub(crate) fn answered(&self) {
        self.0.pass_through();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.stage.store(FREE, Relaxed);
    }
}
