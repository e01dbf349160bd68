//! What a stream of HTTP/2 says of its body's length, held against the body.
//!
//! The library finds out when more or less comes than was announced, and breaks the body off. But on its way to a service that speaks
//! HTTP/1.1 a request is whole with the last byte of its length. So that byte waits until the stream has ended there.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The length of one body, and what is held back for it.
pub(super) struct Length {
    /// How much is still to come.
    left: u64,
    /// The last piece, until the end is seen.
    last: Option<Bytes>,
    /// What came after it.
    trailers: Option<Frame<Bytes>>,
}

type Polled = Poll<Option<Result<Frame<Bytes>, hyper::Error>>>;

impl Length {
    /// Of a body that begins, if it is known.
    pub(super) fn of(body: &Incoming) -> Option<Self> {
        Some(Self { left: body.size_hint().exact()?, last: None, trailers: None })
    }

    /// The next frame of the body: the last one with data not before the end.
    pub(super) fn poll_frame(&mut self, body: &mut Incoming, context: &mut Context<'_>) -> Polled {
        loop {
            if self.last.is_none()
                && let Some(trailers) = self.trailers.take()
            {
                return Poll::Ready(Some(Ok(trailers)));
            }
            let frame = ready!(Pin::new(&mut *body).poll_frame(context));
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        self.left = self.left.saturating_sub(bytes.len() as u64);
                        // Past its length the library lets nothing through but empty pieces.
                        if self.left > 0 || body.is_end_stream() {
                            return Poll::Ready(Some(Ok(Frame::data(self.last.take().unwrap_or(bytes)))));
                        }
                        self.last.get_or_insert(bytes);
                    }
                    Err(trailers) => match self.last.take() {
                        Some(last) => {
                            self.trailers = Some(trailers);
                            return Poll::Ready(Some(Ok(Frame::data(last))));
                        }
                        None => return Poll::Ready(Some(Ok(trailers))),
                    },
                },
                None => return Poll::Ready(self.last.take().map(|last| Ok(Frame::data(last)))),
                broken => {
                    self.last = None;
                    return Poll::Ready(broken);
                }
            }
        }
    }

    pub(super) fn holds_any(&self) -> bool {
        self.last.is_some() || self.trailers.is_some()
    }

    /// What is still to come, of what the body itself has still to give.
    pub(super) fn add_held(&self, mut hint: SizeHint) -> SizeHint {
        let held = self.last.as_ref().map_or(0, Bytes::len) as u64;
        if held > 0 {
            let exact = hint.lower() + held;
            hint.set_lower(exact);
            hint.set_upper(exact);
        }
        hint
    }
}
