//! What a client's connection and the request on it know of each other.

use super::pace::Pace;
use super::streams::{OpenStream, StreamHandle};
use super::tunnel::OtherEnd;
use crate::capacity::{Holder, Permit};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

/// For how long an answer has to stand still until its client counts as stalled. An answer on its way stands still for moments all the time.
pub(in crate::listener) const STALLED: Duration = Duration::from_secs(1);

/// Whose connection a request came over: an extension of every request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// Shared by a connection and a request on it: by the socket, where HTTP/1.1 has one request at a time; by the stream, where
/// HTTP/2 has many.
#[derive(Clone, Default)]
pub(crate) struct RequestState(Arc<Shared>);

#[derive(Default)]
struct Shared {
    stage: AtomicU8,
    failure: AtomicU8,
    /// How long a body may take, where its reader has to see to it.
    body_timeout: Option<Duration>,
    pace: Option<Pace>,
    waiting: Mutex<Waiting>,
    other_end: Mutex<Option<OtherEnd>>,
}

/// What a request waits for its client with, and whether it has to make room for others.
#[derive(Default)]
struct Waiting {
    /// Goes up with every request on the connection.
    request: u64,
    /// Its body does not come.
    body: Option<Waker>,
    /// Its answer is not taken.
    answer: Option<(Instant, Waker)>,
    revoked: bool,
}

/// No request is worked on.
const FREE: u8 = 0;
/// A request is executing, and its client may hang up without effect on it.
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
    /// Its client holds more than its share, and others had no room.
    MadeRoom = 4,
}

/// The body has come as a whole: what fails after it is not its own.
const WHOLE: u8 = 255;

impl RequestState {
    /// For one stream of HTTP/2, whose socket cannot tell its body from others.
    pub(in crate::listener) fn of_stream(body_timeout: Duration, pace: Pace) -> Self {
        Self(Arc::new(Shared { body_timeout: Some(body_timeout), pace: Some(pace), ..Shared::default() }))
    }

    /// A request's work begins; it ends when what is returned is dropped.
    pub(in crate::listener) fn begin(&self, has_key: bool) -> UnderWay {
        self.begin_at(has_key, None)
    }

    pub(in crate::listener) fn begin_at(&self, has_key: bool, place: Option<OpenStream>) -> UnderWay {
        self.0.failure.store(0, Relaxed);
        self.0.stage.store(if has_key { KEYED } else { UNDER_WAY }, Relaxed);
        let mut waiting = self.waiting();
        *waiting = Waiting { request: waiting.request + 1, ..Waiting::default() };
        drop(waiting);
        UnderWay { state: self.clone(), place, in_flight: None }
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

    pub(in crate::listener) fn is_tunnel(&self) -> bool {
        self.0.stage.load(Relaxed) == TUNNEL
    }

    /// The other end of the tunnel that the connection has become, once.
    pub(in crate::listener) fn take_other_end(&self) -> Option<OtherEnd> {
        self.0.other_end.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(in crate::listener) fn is_under_way(&self) -> bool {
        self.0.stage.load(Relaxed) != FREE
    }

    /// Whether the request is to go on even if its client goes.
    pub(in crate::listener) fn outlives_client(&self) -> bool {
        self.0.stage.load(Relaxed) == KEYED
    }

    /// How long the body may take, if that is for its reader to see to.
    pub(in crate::listener) fn body_timeout(&self) -> Option<Duration> {
        self.0.body_timeout
    }

    /// How fast the body has to come, if that is for its reader to see to.
    pub(in crate::listener) fn pace(&self) -> Option<Pace> {
        self.0.pace
    }

    /// Which request it is, among those of its connection.
    pub(in crate::listener) fn request(&self) -> u64 {
        self.waiting().request
    }

    /// The request's body is waited for; `false` once the request has to make room for others.
    pub(in crate::listener) fn waits_for_body(&self, context: &Context<'_>) -> bool {
        let mut waiting = self.waiting();
        match &mut waiting.body {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        !waiting.revoked
    }

    /// The request's body is not waited for any longer.
    pub(in crate::listener) fn has_body(&self) {
        self.waiting().body = None;
    }

    /// The answer is not taken; `false` once the request has to make room for others.
    pub(in crate::listener) fn answer_stalls(&self, context: &Context<'_>) -> bool {
        let mut waiting = self.waiting();
        match &mut waiting.answer {
            Some((_, waker)) => waker.clone_from(context.waker()),
            none => *none = Some((Instant::now(), context.waker().clone())),
        }
        !waiting.revoked
    }

    /// Some of the answer was taken.
    pub(in crate::listener) fn answer_moves(&self) {
        self.waiting().answer = None;
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Only whole values are set under the lock: a poisoned one is as good as any.
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fail(&self, failure: BodyFailure) {
        if self.0.failure.load(Relaxed) != WHOLE {
            self.0.failure.store(failure as u8, Relaxed);
        }
    }

    /// The body of the request at hand has come as a whole. On a connection of HTTP/1.1 the next request may be on its way already, and be
    /// wrong; this one's answer has nothing to do with it.
    pub(in crate::listener) fn body_is_whole(&self) {
        self.0.failure.store(WHOLE, Relaxed);
    }

    /// Why the body of the request at hand did not come as a whole, if it did not.
    pub(crate) fn failure(&self) -> Option<BodyFailure> {
        match self.0.failure.load(Relaxed) {
            1 => Some(BodyFailure::Late),
            2 => Some(BodyFailure::Malformed),
            3 => Some(BodyFailure::TooLong),
            4 => Some(BodyFailure::MadeRoom),
            _ => None,
        }
    }
}

/// A request is worked on, as long as this lives.
pub(crate) struct UnderWay {
    state: RequestState,
    /// Among the streams of its connection.
    place: Option<OpenStream>,
    /// Its part of the requests in flight: until its answer has gone out.
    in_flight: Option<Arc<InFlight>>,
}

impl UnderWay {
    pub(crate) fn state(&self) -> &RequestState {
        &self.state
    }

    pub(in crate::listener) fn place(&mut self) -> Option<&mut OpenStream> {
        self.place.as_mut()
    }

    /// What its part of the requests in flight is taken back from.
    pub(crate) fn holder(&self) -> UnderWayHolder {
        UnderWayHolder {
            state: self.state.clone(),
            request: self.state.request(),
            stream: self.place.as_ref().map(OpenStream::handle),
        }
    }

    /// It counts as in flight until its answer has gone out.
    pub(crate) fn hold(&mut self, in_flight: InFlight) {
        self.in_flight = Some(Arc::new(in_flight));
    }

    pub(crate) fn in_flight(&self) -> Option<&Arc<InFlight>> {
        self.in_flight.as_ref()
    }

    /// It has, or may have, a key that its head did not show.
    pub(crate) fn has_key(&self) {
        let _ = self.state.0.stage.compare_exchange(UNDER_WAY, KEYED, Relaxed, Relaxed);
    }

    /// There is an answer: from now on only its sending is left, and that is pointless without a client.
    pub(crate) fn answered(&self) {
        self.state.pass_through();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.state.is_tunnel() {
            self.state.0.stage.store(FREE, Relaxed);
        }
    }
}

/// A permit to work on a request, held until the answer's body has ended.
pub(crate) type InFlight = Permit<UnderWayHolder>;

/// A request in flight, as far as it can be given up: while its body does not come, or its answer is not taken.
pub(crate) struct UnderWayHolder {
    state: RequestState,
    request: u64,
    stream: Option<StreamHandle>,
}

impl Holder for UnderWayHolder {
    fn is_revocable(&self) -> bool {
        if self.stream.as_ref().is_some_and(|stream| stream.is_stalled(STALLED)) {
            return true;
        }
        let waiting = self.state.waiting();
        waiting.request == self.request
            && (waiting.body.is_some()
                || waiting.answer.as_ref().is_some_and(|(since, _)| since.elapsed() >= STALLED))
    }

    fn revoke(&self) {
        if let Some(stream) = &self.stream {
            stream.give_up(STALLED);
        }
        let mut waiting = self.state.waiting();
        if waiting.request == self.request {
            waiting.revoked = true;
            let wakers = [waiting.body.take(), waiting.answer.take().map(|(_, waker)| waker)];
            drop(waiting);
            wakers.into_iter().flatten().for_each(Waker::wake);
        }
    }
}
