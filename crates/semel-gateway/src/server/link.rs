//! What a client's connection and the request on it know of each other.

use super::streams::Place;
use super::tunnel::OtherEnd;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Whose connection a request came over: an extension of every request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// Shared by a connection and a request on it: by the socket, where HTTP/1.1 has one request at a time; by the stream, where
/// HTTP/2 has many.
#[derive(Clone, Default)]
pub(crate) struct Link(Arc<Shared>);

#[derive(Default)]
struct Shared {
    stage: AtomicU8,
    failure: AtomicU8,
    /// How long a body may take, where its reader has to see to it.
    body_timeout: Option<Duration>,
    other_end: Mutex<Option<OtherEnd>>,
}

/// No request is worked on.
const FREE: u8 = 0;
/// A request is worked on, and its client may go: it is nobody else's business.
const UNDER_WAY: u8 = 1;
/// A request with a key is worked on, which is to be executed even if its client goes.
const KEYED: u8 = 2;
/// There are no more requests: what comes and goes is for the service to understand.
const TUNNEL: u8 = 3;

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

/// The body has come as a whole: what fails after it is not its own.
const WHOLE: u8 = 255;

impl Link {
    /// For one stream of HTTP/2, whose socket cannot tell its body from others.
    pub(super) fn of_stream(body_timeout: Duration) -> Self {
        Self(Arc::new(Shared { body_timeout: Some(body_timeout), ..Shared::default() }))
    }

    /// A request's work begins; it ends when what is returned is dropped.
    pub(super) fn begin(&self, has_key: bool) -> UnderWay {
        self.begin_at(has_key, None)
    }

    pub(super) fn begin_at(&self, has_key: bool, place: Option<Place>) -> UnderWay {
        self.0.failure.store(0, Relaxed);
        self.0.stage.store(if has_key { KEYED } else { UNDER_WAY }, Relaxed);
        UnderWay { link: self.clone(), place }
    }

    /// The request is passed on unprotected: whether its client is still there matters, and its body may take its time.
    pub(crate) fn pass_through(&self) {
        let _ = self.0.stage.compare_exchange(KEYED, UNDER_WAY, Relaxed, Relaxed);
    }

    /// The service has switched protocols: once the client was told, its connection ends here.
    pub(crate) fn tunnel(&self, other_end: OtherEnd) {
        *self.0.other_end.lock().unwrap_or_else(PoisonError::into_inner) = Some(other_end);
        self.0.stage.store(TUNNEL, Relaxed);
    }

    pub(super) fn is_tunnel(&self) -> bool {
        self.0.stage.load(Relaxed) == TUNNEL
    }

    /// The other end of the tunnel that the connection has become, once.
    pub(super) fn take_other_end(&self) -> Option<OtherEnd> {
        self.0.other_end.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.stage.load(Relaxed) != FREE
    }

    /// Whether the request is to go on even if its client goes.
    pub(super) fn outlives_client(&self) -> bool {
        self.0.stage.load(Relaxed) == KEYED
    }

    /// How long the body may take, if that is for its reader to see to.
    pub(super) fn body_timeout(&self) -> Option<Duration> {
        self.0.body_timeout
    }

    pub(crate) fn fail(&self, failure: BodyFailure) {
        if self.0.failure.load(Relaxed) != WHOLE {
            self.0.failure.store(failure as u8, Relaxed);
        }
    }

    /// The body of the request at hand has come as a whole. On a connection of HTTP/1.1 the next request may be on its way already, and be
    /// wrong; this one's answer has nothing to do with it.
    pub(super) fn body_is_whole(&self) {
        self.0.failure.store(WHOLE, Relaxed);
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
pub(crate) struct UnderWay {
    link: Link,
    /// Among the streams of its connection.
    place: Option<Place>,
}

impl UnderWay {
    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// There is an answer: from now on only its sending is left, and that is pointless without a client.
    pub(crate) fn answered(&self) {
        self.link.pass_through();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.link.is_tunnel() {
            self.link.0.stage.store(FREE, Relaxed);
        }
    }
}
