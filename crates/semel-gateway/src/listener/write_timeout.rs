//! A connection whose client has to take what is written to it.

use super::pace::{Pace, Patience};
use crate::deadline_timer::DeadlineTimer;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Breaks once what is written is taken too slowly. What is read has limits elsewhere.
pub(crate) struct WriteTimeout<S> {
    stream: S,
    patience: Patience,
    timer: DeadlineTimer,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, pace: Pace) -> Self {
        Self { stream, patience: Patience::new(pace), timer: DeadlineTimer::default() }
    }

    /// What is written from now on is another answer.
    pub(super) fn next_answer(&mut self) {
        self.patience.restart();
    }

    fn unless_stalled<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
        length: impl Fn(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = written {
            self.patience.moved(written.as_ref().map_or(0, length));
            return Poll::Ready(written);
        }
        ready!(self.timer.poll_until(context, self.patience.wait()));
        tracing::debug!("the client does not read its answer");
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.unless_stalled(context, written, |length| *length)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.unless_stalled(context, written, |length| *length)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// What was written to an encrypted stream goes out here.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.unless_stalled(context, flushed, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut_down = Pin::new(&mut self.stream).poll_shutdown(context);
        self.unless_stalled(context, shut_down, |()| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn patience_begins_anew_with_everything_that_is_taken() {
        let start = Instant::now();
        let (stream, mut client) = tokio::io::duplex(8);
        let mut stream = WriteTimeout::new(stream, Pace::pausing(Duration::from_secs(10)));
        stream.write_all(b"12345678").await.unwrap();
        let waiting = tokio::time::timeout(Duration::from_secs(9), stream.write_all(b"9"));
        assert!(waiting.await.is_err());
        client.read_exact(&mut [0; 4]).await.unwrap();
        let error = stream.write_all(b"9abcd").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 19);
    }
}
