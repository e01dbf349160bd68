//! The bodies of a request and of its answer.

use super::length::Length;
use super::pace::Patience;
use super::request_state::{BodyFailure, RequestState, UnderWay};
use super::{LINGER, LINGER_BYTES};
use crate::deadline_timer::DeadlineTimer;
use crate::headers::{Decisive, clean_trailers};
use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use semel_tower::BoxError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// The largest piece of an answer that is handed out on a stream of HTTP/2. What was handed out is out of sight: whether the client
/// takes it shows by the next piece being asked for.
const PIECE: usize = 16 * 1024;

/// How much of an unwanted body is read to keep a connection of HTTP/1.1. Past it a new connection is cheaper.
const DRAINED: usize = 256 * 1024;

/// A request's body: as it comes in, or as the layer has read it.
pub struct RequestBody(Source);

enum Source {
    Incoming {
        body: Incoming,
        /// How much more may come.
        left: Option<u64>,
        state: RequestState,
        /// Apart, as it is seldom needed: every request's future would have the room for it.
        waiting: Option<Box<Waiting>>,
        /// Whether the client sends it: one that expects to be told to go on may not, until somebody wants to read.
        is_coming: bool,
        /// Whether its connection knows that the client is waited for.
        is_waited_for: bool,
        /// Goes up with every piece.
        progress: Option<Arc<AtomicU64>>,
        /// Where its length is watched.
        length: Option<Box<Length>>,
        /// What trailers may not say.
        decisive: Option<Decisive>,
    },
    Whole(Option<Bytes>),
}

/// How long the next piece has been waited for.
#[derive(Default)]
struct Waiting {
    /// Of a whole body.
    since: Option<Instant>,
    /// With a body that is passed on.
    patience: Option<Patience>,
    timer: DeadlineTimer,
}

/// A body that is passed on unprotected got too long.
#[derive(Debug, thiserror::Error)]
#[error("the request body is larger than the gateway passes on")]
struct TooLong;

impl RequestBody {
    pub(crate) fn incoming(body: Incoming, headers: &HeaderMap, state: RequestState) -> Self {
        // An empty body needs no following.
        Self(if body.is_end_stream() {
            state.body_is_whole();
            Source::Whole(None)
        } else {
            let is_coming = !headers.contains_key(EXPECT);
            Source::Incoming {
                body,
                left: None,
                state,
                waiting: None,
                is_coming,
                is_waited_for: false,
                progress: None,
                length: None,
                decisive: None,
            }
        })
    }

    /// Says what its trailers may not say, besides what they never may.
    pub(crate) fn clean_trailers_by(&mut self, rules: &Decisive) {
        if let Source::Incoming { decisive, .. } = &mut self.0 {
            *decisive = Some(rules.clone());
        }
    }

    /// Says how long it may be. What the layer has read has a limit of its own.
    pub(crate) fn limit(&mut self, most: Option<u64>) {
        if let Source::Incoming { left, .. } = &mut self.0 {
            *left = most;
        }
    }

    /// Holds a stream of HTTP/2 to the length that it announces, before any of it is passed on. Waits for the end of one that is said to
    /// be empty, and is not ended yet: whether it is.
    ///
    /// # Errors
    /// It does not end as it should.
    pub(crate) async fn hold_to_length(&mut self) -> Result<bool, BoxError> {
        if let Source::Incoming { body, length, .. } = &mut self.0 {
            *length = Length::of(body).map(Box::new);
        }
        while !self.is_end_stream() && self.size_hint().exact() == Some(0) {
            match self.frame().await.transpose()? {
                Some(frame) if frame.data_ref().is_some_and(|bytes| !bytes.is_empty()) => return Ok(false),
                Some(_) => {}
                None => break,
            }
        }
        Ok(true)
    }

    /// Counts its pieces there.
    pub(crate) fn count(&mut self, pieces: &Arc<AtomicU64>) {
        if let Source::Incoming { progress, .. } = &mut self.0 {
            *progress = Some(Arc::clone(pieces));
        }
    }
}

/// A body that nobody reads any more is listened to for a while: a service may answer before it has read, or without. What is left of a
/// body would end a connection of HTTP/1.1, whose client may be sending its next request by then. On a stream of HTTP/2 some clients
/// lose the answer that they have if the stream is reset while they are still sending.
impl Drop for RequestBody {
    fn drop(&mut self) {
        let Source::Incoming { body, is_coming, is_waited_for, state, .. } =
            std::mem::replace(&mut self.0, Source::Whole(None))
        else {
            return;
        };
        if is_waited_for {
            state.has_body();
        }
        let most = if state.body_timeout().is_some() { LINGER_BYTES } else { DRAINED };
        if is_coming
            && !body.is_end_stream()
            && body.size_hint().lower() <= most as u64
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { drop(tokio::time::timeout(LINGER, discard(body, most)).await) });
        }
    }
}

async fn discard(mut body: Incoming, most: usize) {
    let mut left = most;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len);
        let Some(rest) = left.checked_sub(length) else { return };
        left = rest;
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(Source::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Source::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Incoming {
                body,
                left,
                state,
                waiting,
                is_coming,
                is_waited_for,
                progress,
                length,
                decisive,
            } => {
                *is_coming = true;
                let polled = match length {
                    None => Pin::new(&mut *body).poll_frame(context),
                    Some(length) => length.poll_frame(body, context),
                };
                let Poll::Ready(mut frame) = polled else {
                    *is_waited_for = true;
                    if state.waits_for_body(context) {
                        ready!(poll_too_late(waiting, context, state));
                        state.fail(BodyFailure::Late);
                    } else {
                        state.fail(BodyFailure::MadeRoom);
                    }
                    return Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())));
                };
                if std::mem::take(is_waited_for) {
                    state.has_body();
                }
                if let (Some(patience), Some(Ok(frame))) =
                    (waiting.as_mut().and_then(|waiting| waiting.patience.as_mut()), &frame)
                {
                    patience.moved(frame.data_ref().map_or(0, Bytes::len));
                }
                if let Some(Ok(frame)) = &mut frame
                    && let Some(trailers) = frame.trailers_mut()
                {
                    match decisive {
                        Some(decisive) => clean_trailers(trailers, decisive),
                        None => clean_trailers(trailers, &Decisive::default()),
                    }
                }
                if let Some(progress) = progress {
                    progress.fetch_add(1, Relaxed);
                }
                if let (Some(left), Some(Ok(frame))) = (left, &frame)
                    && let Some(bytes) = frame.data_ref()
                {
                    let Some(rest) = left.checked_sub(bytes.len() as u64) else {
                        state.fail(BodyFailure::TooLong);
                        return Poll::Ready(Some(Err(TooLong.into())));
                    };
                    *left = rest;
                }
                if frame.is_none()
                    || (!is_held(length) && body.is_end_stream() && matches!(frame, Some(Ok(_))))
                {
                    state.body_is_whole();
                }
                if !matches!(frame, Some(Ok(_))) {
                    self.0 = Source::Whole(None);
                }
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Whole(bytes) => bytes.is_none(),
            Source::Incoming { body, length, .. } => !is_held(length) && body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Incoming { body, length: None, .. } => body.size_hint(),
            Source::Incoming { body, length: Some(length), .. } => length.add_held(body.size_hint()),
        }
    }
}

/// Whether a part of the body has come, and is not given out.
fn is_held(length: &Option<Box<Length>>) -> bool {
    length.as_ref().is_some_and(|length| length.holds_any())
}

/// Ready once it is too late: for all of it, where it is to be executed; once it comes too slowly, where it passes.
fn poll_too_late(
    waiting: &mut Option<Box<Waiting>>,
    context: &mut Context<'_>,
    state: &RequestState,
) -> Poll<()> {
    let (Some(allowed), Some(pace)) = (state.body_timeout(), state.pace()) else { return Poll::Pending };
    let waiting = waiting.get_or_insert_default();
    let until = if state.outlives_client() {
        *waiting.since.get_or_insert_with(Instant::now) + allowed
    } else {
        waiting.patience.get_or_insert_with(|| Patience::new(pace)).wait()
    };
    waiting.timer.poll_until(context, until)
}

/// An answer's body. The request is under way until it is gone.
pub(crate) struct AnswerBody {
    body: semel_tower::Body,
    /// What does not fit into one piece.
    rest: Bytes,
    /// Gone with the last piece.
    under_way: Option<UnderWay>,
}

impl AnswerBody {
    pub(crate) fn new(body: semel_tower::Body, under_way: UnderWay) -> Self {
        under_way.answered();
        Self { body, rest: Bytes::new(), under_way: Some(under_way) }
    }

    /// Puts these bytes in the place of a body of which nothing was sent.
    pub(crate) fn replace(&mut self, bytes: Bytes) {
        self.body = semel_tower::Body::from(bytes);
    }

    /// The next piece, on a stream of HTTP/2.
    fn piece(&mut self, mut bytes: Bytes) -> Bytes {
        if bytes.len() > PIECE {
            self.rest = bytes.split_off(PIECE);
        } else if !bytes.is_unique() {
            // A small end must not keep all of a large answer in memory.
            bytes = Bytes::copy_from_slice(&bytes);
        }
        if let Some(place) = self.under_way.as_mut().and_then(UnderWay::place) {
            place.handed_out(bytes.len());
        }
        if !self.is_end_stream() {
            return bytes;
        }
        // The library takes the last piece, is done with the body, and keeps the piece until the client has room for it.
        match self.under_way.take() {
            Some(under_way) => Bytes::from_owner(LastPiece { bytes, _under_way: under_way }),
            None => bytes,
        }
    }
}

/// The end of an answer, on a stream of HTTP/2. The request is under way until it has gone out.
struct LastPiece {
    bytes: Bytes,
    _under_way: UnderWay,
}

impl AsRef<[u8]> for LastPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Some(place) = this.under_way.as_mut().and_then(UnderWay::place) else {
            return Pin::new(&mut this.body).poll_frame(context);
        };
        place.taken();
        let frame = if this.rest.is_empty() {
            ready!(Pin::new(&mut this.body).poll_frame(context))
        } else {
            Some(Ok(Frame::data(std::mem::take(&mut this.rest))))
        };
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| match frame.into_data() {
                Ok(bytes) => Frame::data(this.piece(bytes)),
                Err(trailers) => trailers,
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        let rest = self.rest.len() as u64;
        // The upper bound first: the lower one must not pass it.
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
