//! The body of an answer: bytes that are there, or a stream that is passed on.

mod budget;

pub use budget::BodyBudget;
pub(crate) use budget::NoRoom;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer of [`Idempotency`](crate::Idempotency), and a request body for hyper services, which need one that
/// can be made of bytes as well as of a connection.
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    /// Apart, as gRPC alone has trailers: every answer would have the room for them.
    Trailed(Box<Trailed>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

/// Bytes that are there, and the trailers after them.
struct Trailed {
    bytes: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body {
    /// A body that is passed on as it comes.
    pub fn stream<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Kind::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    /// These bytes, and the trailers after them, if there are any.
    pub(crate) fn trailed(bytes: Bytes, trailers: Option<HeaderMap>) -> Self {
        match trailers {
            None => Self::from(bytes),
            trailers => {
                let bytes = (!bytes.is_empty()).then_some(bytes);
                Self(Kind::Trailed(Box::new(Trailed { bytes, trailers })))
            }
        }
    }

    /// No body.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Kind::Whole(None))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Trailed(trailed) => {
                let data = trailed.bytes.take().map(Frame::data);
                Poll::Ready(data.or_else(|| trailed.trailers.take().map(Frame::trailers)).map(Ok))
            }
            Kind::Stream(stream) => Pin::new(stream).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(bytes) => bytes.is_none(),
            Kind::Trailed(trailed) => trailed.bytes.is_none() && trailed.trailers.is_none(),
            Kind::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            // Without an upper bound: of an exact length servers make a Content-Length, which no gRPC server sends.
            Kind::Trailed(trailed) => {
                let mut hint = SizeHint::new();
                hint.set_lower(trailed.bytes.as_ref().map_or(0, Bytes::len) as u64);
                hint
            }
            Kind::Stream(stream) => stream.size_hint(),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Kind::Whole(_) => "Body::Whole",
            Kind::Trailed(_) => "Body::Trailed",
            Kind::Stream(_) => "Body::Stream",
        })
    }
}

/// What reading a body up to a limit came to.
pub(crate) enum Collected<B> {
    /// All of it, with its trailers.
    Whole(Bytes, Option<Box<HeaderMap>>),
    /// It is longer than the limit, or to be passed on: what was read, and the rest.
    TooLong(Vec<Bytes>, B),
    /// It broke off, or there was no room for more of it.
    Broken(BoxError),
}

/// Why the rest of a body is not read.
pub(crate) enum Stop {
    /// It is passed on.
    PassOn,
    /// Nobody wants it.
    Broken(BoxError),
}

impl From<NoRoom> for Stop {
    fn from(error: NoRoom) -> Self {
        Self::Broken(error.into())
    }
}

/// Reads a body, but no more than one frame beyond `limit` bytes, and no further than `look` lets it, which sees each piece.
pub(crate) async fn collect<B>(
    mut body: B,
    limit: usize,
    mut look: impl FnMut(&Bytes) -> Result<(), Stop>,
) -> Collected<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let mut read = Pieces::default();
    let mut length = 0;
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(bytes)) => {
                let stop = look(&bytes);
                if let Err(Stop::Broken(error)) = stop {
                    return Collected::Broken(error);
                }
                length += bytes.len();
                read.add(bytes);
                if length > limit || stop.is_err() {
                    return Collected::TooLong(read.into_vec(), body);
                }
            }
            Ok(Err(frame)) => trailers = frame.into_trailers().ok().map(Box::new),
            Err(error) => return Collected::Broken(error.into()),
        }
    }
    let mut read = read.into_vec();
    let bytes = match read.len() {
        0 => Bytes::new(),
        1 => read.swap_remove(0),
        _ => read.concat().into(),
    };
    Collected::Whole(bytes, trailers)
}

/// What was read of a body. A piece costs more than its bytes: a handle, and the buffer that it is a part of. So that a body in pieces
/// of a byte takes no more memory than is counted, small ones are put together; the first one is not, as it may be the whole.
#[derive(Default)]
struct Pieces {
    read: Vec<Bytes>,
    small: Vec<u8>,
}

/// Smaller pieces are copied together, up to this many bytes.
const SMALL: usize = 1024;
const TOGETHER: usize = 8 * SMALL;

impl Pieces {
    fn add(&mut self, piece: Bytes) {
        if piece.len() >= SMALL || self.read.is_empty() {
            self.put_together();
            self.read.push(piece);
            return;
        }
        self.small.extend_from_slice(&piece);
        if self.small.len() >= TOGETHER {
            self.put_together();
        }
    }

    fn put_together(&mut self) {
        if !self.small.is_empty() {
            self.read.push(std::mem::take(&mut self.small).into());
        }
    }

    fn into_vec(mut self) -> Vec<Bytes> {
        self.put_together();
        self.read
    }
}

/// What was read of a body, and then the rest of it. Without trailers, but for gRPC's: the answer of a protected request has none, stored
/// or not.
pub(crate) struct Resumed<B> {
    read: std::vec::IntoIter<Bytes>,
    rest: B,
    with_trailers: bool,
}

impl<B> Resumed<B> {
    pub(crate) fn new(read: Vec<Bytes>, rest: B) -> Self {
        Self { read: read.into_iter(), rest, with_trailers: false }
    }

    pub(crate) fn with_trailers(self) -> Self {
        Self { with_trailers: true, ..self }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Resumed<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.read.next() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if self.with_trailers => Pin::new(&mut self.rest).poll_frame(context),
            None => {
                Pin::new(&mut self.rest).poll_frame(context).map_ok(Frame::into_data).map(|frame| match frame
                {
                    Some(Ok(Ok(bytes))) => Some(Ok(Frame::data(bytes))),
                    Some(Err(error)) => Some(Err(error)),
                    Some(Ok(Err(_))) | None => None,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(of: &[usize]) -> Vec<usize> {
        let mut pieces = Pieces::default();
        of.iter().for_each(|length| pieces.add(vec![7; *length].into()));
        pieces.into_vec().iter().map(Bytes::len).collect()
    }

    #[test]
    fn small_pieces_are_put_together() {
        assert!(pieces(&[]).is_empty());
        assert_eq!(pieces(&[1]), [1]);
        assert_eq!(pieces(&[1; 20_001]), [1, TOGETHER, TOGETHER, 20_000 - 2 * TOGETHER]);
    }

    #[test]
    fn large_pieces_stay_as_they_came_and_in_their_order() {
        assert_eq!(pieces(&[5, 3, 4, SMALL, SMALL, 2]), [5, 7, SMALL, SMALL, 2]);
        let whole = Bytes::from(vec![1; 10]);
        let mut only = Pieces::default();
        only.add(whole.clone());
        assert_eq!(only.into_vec()[0].as_ptr(), whole.as_ptr(), "a body in one piece is not copied");
    }
}
