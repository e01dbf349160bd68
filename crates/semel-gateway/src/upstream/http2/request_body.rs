//! A request's body on its way to the service.

use crate::listener::RequestBody;
use bytes::{Buf, Bytes};
use h2::{Reason, SendStream};
use http_body::Body as _;
use semel::{Right, RightEnded};
use semel_tower::BoxError;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};

/// The longest body whose end is handed out with the rest of it: one frame, on a connection that takes what is written. The end of a longer
/// one is handed out once the rest of it is gone: frames that wait in the library's queue are out of sight, and go out whenever the
/// connection takes them.
const IN_ONE: usize = 16 * 1024;

pub(super) struct Sending {
    body: RequestBody,
    stream: SendStream<Piece>,
    /// Taken from the body, and waiting for room.
    piece: Bytes,
    /// The last byte of a long body.
    held_back: Bytes,
    has_ended: bool,
    /// What is sent for an operation: until the right to execute it has ended.
    guard: Option<Guard>,
}

struct Guard {
    right: Right,
    handed_out: u64,
    taken: Arc<Taken>,
}

/// How much of what was handed out has left the library's queue.
#[derive(Default)]
struct Taken {
    bytes: AtomicU64,
    waiting: Mutex<Option<Waker>>,
}

/// Bytes that tell when they are taken.
pub(super) struct Piece {
    bytes: Bytes,
    taken: Option<Arc<Taken>>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(taken) = &self.taken {
            taken.bytes.fetch_add(count as u64, Relaxed);
            let waiting = taken.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waiting) = waiting {
                waiting.wake();
            }
        }
    }
}

impl Guard {
    fn is_all_taken(&self) -> bool {
        self.taken.bytes.load(Relaxed) == self.handed_out
    }

    /// Ready once all that was handed out is gone.
    fn poll_taken(&self, context: &Context<'_>) -> Poll<()> {
        if !self.is_all_taken() {
            let mut waiting = self.taken.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            *waiting = Some(context.waker().clone());
        }
        // Looked at again: the last of it may have gone before anybody was waiting.
        if self.is_all_taken() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Sending {
    pub(super) fn new(
        body: RequestBody,
        stream: SendStream<Piece>,
        has_ended: bool,
        right: Option<&Right>,
    ) -> Self {
        let guard = right.map(|right| Guard { right: right.clone(), handed_out: 0, taken: Arc::default() });
        Self { body, stream, piece: Bytes::new(), held_back: Bytes::new(), has_ended, guard }
    }

    /// Goes on as far as there is something to send and room for it. An error is the client's, or that the right to execute has ended; what
    /// is wrong at the service's side the answer tells.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if let Some(guard) = &self.guard
            && let Err(ended) = guard.right.check_cheaply()
        {
            if self.has_ended && guard.is_all_taken() {
                // It is whole: it goes on, and its late outcome counts.
                self.guard = None;
            } else {
                return Poll::Ready(Err(self.break_off(ended)));
            }
        }
        while !self.has_ended {
            if !self.piece.is_empty() {
                ready!(self.poll_piece(context))?;
                continue;
            }
            if !self.held_back.is_empty() {
                if let Some(guard) = &self.guard {
                    ready!(guard.poll_taken(context));
                }
                self.piece = std::mem::take(&mut self.held_back);
                continue;
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => {
                    self.check()?;
                    self.has_ended = true;
                    let _ = self.stream.send_data(Piece { bytes: Bytes::new(), taken: None }, true);
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        self.piece = bytes;
                        if self.guard.is_some() && self.piece.len() > IN_ONE && self.body.is_end_stream() {
                            self.held_back = self.piece.split_off(self.piece.len() - 1);
                        }
                    }
                    Err(frame) => {
                        self.check()?;
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
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.stream.reserve_capacity(self.piece.len());
        while self.stream.capacity() == 0 {
            if !matches!(ready!(self.stream.poll_capacity(context)), Some(Ok(_))) {
                // The service wants no more of it.
                self.has_ended = true;
                return Poll::Ready(Ok(()));
            }
        }
        let room = self.stream.capacity().min(self.piece.len());
        let bytes = self.piece.split_to(room);
        let is_last = self.piece.is_empty() && self.held_back.is_empty() && self.body.is_end_stream();
        if is_last {
            self.check()?;
        }
        let taken = self.guard.as_mut().map(|guard| {
            guard.handed_out += bytes.len() as u64;
            Arc::clone(&guard.taken)
        });
        if self.stream.send_data(Piece { bytes, taken }, is_last).is_err() || is_last {
            self.has_ended = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Right before the end is sent.
    fn check(&mut self) -> Result<(), BoxError> {
        match self.guard.as_ref().map_or(Ok(()), |guard| guard.right.check()) {
            Ok(()) => Ok(()),
            Err(ended) => Err(self.break_off(ended)),
        }
    }

    /// Resets the stream: what waits in the library's queue is not sent any more.
    fn break_off(&mut self, ended: RightEnded) -> BoxError {
        self.has_ended = true;
        self.guard = None;
        self.stream.send_reset(Reason::CANCEL);
        ended.into()
    }
}
