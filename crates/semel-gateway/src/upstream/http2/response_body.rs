//! An answer as it comes over a stream.

use super::Silence;
use super::pool::StreamPermit;
use super::request_body::Sending;
use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use semel_tower::BoxError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of an answer. The rest of the request goes out beside it: some services answer as they read.
pub(in crate::upstream) struct StreamBody {
    stream: RecvStream,
    sending: Sending,
    silence: Silence,
    has_data_ended: bool,
    has_ended: bool,
    _place: StreamPermit,
}

impl StreamBody {
    pub(super) fn new(
        stream: RecvStream,
        sending: Sending,
        mut silence: Silence,
        place: StreamPermit,
    ) -> Self {
        silence.broken();
        Self { stream, sending, silence, has_data_ended: false, has_ended: false, _place: place }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.has_data_ended {
            if let Some(data) = ready!(self.stream.poll_data(context)) {
                let released = data.and_then(|bytes| {
                    self.stream.flow_control().release_capacity(bytes.len())?;
                    Ok(Frame::data(bytes))
                });
                return Poll::Ready(Some(released));
            }
            self.has_data_ended = true;
        }
        let trailers = ready!(self.stream.poll_trailers(context))?;
        self.has_ended = true;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.has_ended {
            return Poll::Ready(None);
        }
        if let Poll::Ready(Err(error)) = this.sending.poll(context) {
            this.has_ended = true;
            return Poll::Ready(Some(Err(error)));
        }
        match this.poll_next(context) {
            Poll::Ready(next) => {
                this.silence.broken();
                // However a stream breaks off, it breaks off: no reason makes a whole answer of a half.
                this.has_ended |= matches!(next, Some(Err(_)) | None);
                Poll::Ready(next.map(|next| next.map_err(Into::into)))
            }
            Poll::Pending => this.silence.poll(context).map(|gave_up| Some(Err(gave_up.into()))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended || self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_end_stream() { SizeHint::with_exact(0) } else { SizeHint::default() }
    }
}
