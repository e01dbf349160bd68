//! A client's socket: guarded against ambiguous framing and against clients that take for ever.

use super::framing::{Framing, Position, Refused};
use crate::deadline_timer::DeadlineTimer;
use crate::limits::Limits;
use crate::listener::pace::{Pace, Patience};
use crate::listener::{
    BodyFailure, ClientStream, LINGER, LINGER_BYTES, RequestState, WriteTimeout, buffer_size,
};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// No head can contain it: the HTTP library answers 400 to whatever it ends, after what came before it, and closes.
const POISON: &[u8] = b"\0\r\n\r\n";

/// What the HTTP library reads from and writes to.
pub(super) struct ClientSocket {
    stream: WriteTimeout<ClientStream>,
    peer: SocketAddr,
    limits: Arc<Limits>,
    state: RequestState,
    framing: Framing,
    end: Option<End>,
    waiting: Waiting,
    /// With a body that is passed on.
    patience: Patience,
    read_timer: DeadlineTimer,
    /// The request that was read and written for last, and whether its answer stands still.
    request: u64,
    stalls: bool,
    lingering: Option<Lingering>,
}

/// Why nothing more is read.
enum End {
    /// The request is refused; how much of the poison was handed out.
    Poisoned(usize),
    /// The request's body is refused.
    Malformed,
    /// The client has gone, and the library is told once nothing needs the connection any more.
    Gone(io::Result<()>),
}

/// What is waited for, and since when.
struct Waiting {
    what: What,
    since: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    FirstHead,
    Head,
    /// All of it, in time.
    WholeBody,
    /// The next piece of it.
    NextPiece,
    NextRequest,
    /// Nothing of the client's.
    Answer,
}

struct Lingering {
    until: Instant,
    left: usize,
}

impl ClientSocket {
    /// `begun`: when the client connected.
    pub(super) fn new(
        stream: ClientStream,
        peer: SocketAddr,
        begun: Instant,
        limits: Arc<Limits>,
        state: RequestState,
    ) -> Self {
        Self {
            stream: WriteTimeout::new(stream, Pace::of(&limits)),
            patience: Patience::new(Pace::of(&limits)),
            peer,
            // The library refuses a head that is too long, with the right status, after having read at most a buffer more.
            framing: Framing::new(limits.header_bytes + buffer_size(&limits)),
            limits,
            state,
            end: None,
            waiting: Waiting { what: What::FirstHead, since: begun },
            read_timer: DeadlineTimer::default(),
            request: 0,
            stalls: false,
            lingering: None,
        }
    }

    /// Looks at what was read from `from` on, and takes back what is refused.
    fn admit(&mut self, buffer: &mut ReadBuf<'_>, from: usize) -> io::Result<()> {
        let Err(Refused { passing, violation }) = self.framing.inspect(&buffer.filled()[from..]) else {
            return Ok(());
        };
        tracing::debug!(peer = %self.peer, %violation, "request refused");
        buffer.set_filled(from + passing);
        if self.framing.position() != Position::Body {
            self.end = Some(End::Poisoned(0));
            self.hand_out_poison(buffer);
            return Ok(());
        }
        self.state.fail(BodyFailure::Malformed);
        self.end = Some(End::Malformed);
        if passing == 0 { Err(io::ErrorKind::InvalidData.into()) } else { Ok(()) }
    }

    fn hand_out_poison(&mut self, buffer: &mut ReadBuf<'_>) {
        if let Some(End::Poisoned(given)) = &mut self.end {
            let some = POISON[*given..].len().min(buffer.remaining());
            buffer.put_slice(&POISON[*given..*given + some]);
            *given += some;
        }
    }

    /// Nothing came. Ready once it is too late for it.
    fn poll_too_late(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let what = match (self.framing.position(), self.waiting.what) {
            (Position::Boundary, _) if self.state.is_under_way() => What::Answer,
            (Position::Boundary | Position::Head, What::FirstHead) => What::FirstHead,
            (Position::Boundary, _) => What::NextRequest,
            (Position::Head, _) => What::Head,
            (Position::Body, _) if self.state.outlives_client() => What::WholeBody,
            (Position::Body, _) => What::NextPiece,
        };
        if what == What::NextPiece {
            return self.poll_too_slow(context);
        }
        let starts_anew = what != self.waiting.what;
        if starts_anew {
            self.waiting = Waiting { what, since: Instant::now() };
        }
        let allowed = match what {
            What::FirstHead | What::Head => self.limits.header_timeout,
            What::WholeBody => self.limits.body_timeout,
            What::NextRequest => self.limits.idle_timeout,
            What::NextPiece | What::Answer => return Poll::Pending,
        };
        ready!(self.read_timer.poll_until(context, self.waiting.since + allowed));
        match what {
            What::WholeBody => Poll::Ready(Err(self.comes_too_late())),
            _ => {
                tracing::trace!(peer = %self.peer, "no request arrived in time");
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Nothing came of a body that is passed on. Ready once it comes too slowly.
    fn poll_too_slow(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.waiting.what != What::NextPiece {
            self.waiting = Waiting { what: What::NextPiece, since: Instant::now() };
            self.patience.restart();
        }
        ready!(self.read_timer.poll_until(context, self.patience.wait()));
        Poll::Ready(Err(self.comes_too_late()))
    }

    fn comes_too_late(&self) -> io::Error {
        tracing::debug!(peer = %self.peer, "a request body arrives too slowly");
        self.state.fail(BodyFailure::Late);
        io::ErrorKind::TimedOut.into()
    }

    /// Something is written, or about to be.
    fn writes(&mut self, context: &Context<'_>) {
        let request = self.state.request();
        if self.request != request {
            self.request = request;
            self.stream.next_answer();
        }
        if matches!(self.end, Some(End::Gone(_))) {
            // The library stopped reading when it was told that nothing had come: it is to look again.
            context.waker().wake_by_ref();
        }
    }

    /// What was tried to write; an error once the request has to make room for others.
    fn unless_revoked<T>(
        &mut self,
        context: &Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.stalls = true;
            if !self.state.answer_stalls(context) {
                tracing::debug!(peer = %self.peer, "closed a connection whose client does not read its answer, to make \
                                                    room");
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        } else if std::mem::take(&mut self.stalls) {
            self.state.answer_moves();
        }
        written
    }

    /// Reads on for a while after the last answer, if the client may be still sending.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let lingering = self
            .lingering
            .get_or_insert_with(|| Lingering { until: Instant::now() + LINGER, left: LINGER_BYTES });
        let mut discarded = [0; 16 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut discarded);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    lingering.left = lingering.left.saturating_sub(buffer.filled().len());
                    if lingering.left == 0 {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.read_timer.poll_until(context, lingering.until),
            }
        }
    }
}

impl AsyncRead for ClientSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.state.is_tunnel() {
            return Pin::new(&mut this.stream).poll_read(context, buffer);
        }
        match &this.end {
            Some(End::Gone(_)) if this.state.outlives_client() => return Poll::Pending,
            Some(End::Gone(gone)) => {
                return Poll::Ready(gone.as_ref().map_err(|error| error.kind().into()).copied());
            }
            Some(End::Malformed) => {
                // Told again: if it came together with its head, the request had not begun when it was refused.
                this.state.fail(BodyFailure::Malformed);
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            Some(End::Poisoned(_)) => {
                this.hand_out_poison(buffer);
                return Poll::Ready(Ok(()));
            }
            None => {}
        }
        let from = buffer.filled().len();
        let read = match Pin::new(&mut this.stream).poll_read(context, buffer) {
            Poll::Ready(read) => read,
            Poll::Pending => return this.poll_too_late(context),
        };
        if read.is_ok() && buffer.filled().len() > from {
            let admitted = this.admit(buffer, from);
            if this.waiting.what == What::NextPiece {
                this.patience.moved(buffer.filled().len() - from);
            }
            if this.waiting.what == What::FirstHead && this.framing.position() != Position::Head {
                // The head is complete: the next wait has its own deadline.
                this.waiting.what = What::Answer;
            }
            return Poll::Ready(admitted);
        }
        // The client has gone. Were the library told, it would drop the request, maybe before anybody has looked at it.
        if this.state.outlives_client() && this.framing.position() == Position::Boundary {
            this.end = Some(End::Gone(read));
            return Poll::Pending;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for ClientSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes(context);
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_revoked(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writes(context);
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.unless_revoked(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_revoked(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        let is_sending =
            self.framing.position() != Position::Boundary || matches!(self.end, Some(End::Poisoned(_)));
        if is_sending && !self.state.is_tunnel() {
            ready!(self.poll_linger(context));
        }
        Poll::Ready(Ok(()))
    }
}
