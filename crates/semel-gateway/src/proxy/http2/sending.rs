//! A request's body on its way to the service.

use crate::server::RequestBody;
use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body as _;
use semel_tower::BoxError;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pub(super) struct Sending {
    body: RequestBody,
    stream: SendStream<Bytes>,
    /// Taken from the body, and waiting for room.
    piece: Bytes,
    has_ended: bool,
}

impl Sending {
    pub(super) fn new(body: RequestBody, stream: SendStream<Bytes>, has_ended: bool) -> Self {
        Self { body, stream, piece: Bytes::new(), has_ended }
    }

    /// Goes on as far as there is something to send and room for it. An error is the client's; what is wrong at the service's side
    /// the answer tells.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        while !self.has_ended {
            if !self.piece.is_empty() {
                ready!(self.poll_piece(context));
                continue;
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => {
                    self.has_ended = true;
                    let _ = self.stream.send_data(Bytes::new(), true);
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.piece = bytes,
                    Err(frame) => {
                        self.has_ended = true;
                        let trailers = frame.into_trailers().unwrap_or_default();
                        let _ = self.stream.send_trailers(trailers);
                    }
                },
                Some(Err(error)) => {
                    self.has_ended = true;
                    self.stream.send_reset(Reason::CANCEL);
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends of the piece what there is room for.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.stream.reserve_capacity(self.piece.len());
        while self.stream.capacity() == 0 {
            if !matches!(ready!(self.stream.poll_capacity(context)), Some(Ok(_))) {
                // The service wants no more of it.
                self.has_ended = true;
                return Poll::Ready(());
            }
        }
        let room = self.stream.capacity().min(self.piece.len());
        let piece = self.piece.split_to(room);
        let is_last = self.piece.is_empty() && self.body.is_end_stream();
        if self.stream.send_data(piece, is_last).is_err() || is_last {
            self.has_ended = true;
        }
        Poll::Ready(())
    }
}
