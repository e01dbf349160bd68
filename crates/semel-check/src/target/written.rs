//! A stream that notes when bytes leave, and can hold them back for one moment.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When bytes were given to the system on one connection.
#[derive(Clone, Default)]
pub(super) struct Writes(Arc<Shared>);

/// When one write began, and when it was known to have succeeded. In between the server may have read it, and even answered.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

#[derive(Default)]
struct Shared {
    at: Mutex<Vec<Write>>,
    is_held: AtomicBool,
    waiting: Mutex<Option<Waker>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writes {
    /// The last write that began before a moment.
    pub(super) fn last_before(&self, moment: Instant) -> Option<Write> {
        lock(&self.0.at).iter().rev().find(|write| write.began <= moment).copied()
    }

    /// The first write that began from a moment on.
    pub(super) fn first_after(&self, moment: Instant) -> Option<Write> {
        lock(&self.0.at).iter().find(|write| write.began >= moment).copied()
    }

    /// Nothing leaves any more: what is sent gathers until it is released.
    pub(super) fn hold(&self) {
        self.0.is_held.store(true, Ordering::SeqCst);
    }

    /// What has gathered leaves in one write.
    pub(super) fn release(&self) {
        self.0.is_held.store(false, Ordering::SeqCst);
        if let Some(waker) = lock(&self.0.waiting).take() {
            waker.wake();
        }
    }

    /// Whether nothing may leave now; the task is woken once it may.
    fn holds(&self, cx: &Context<'_>) -> bool {
        let mut waiting = lock(&self.0.waiting);
        let is_held = self.0.is_held.load(Ordering::SeqCst);
        if is_held {
            *waiting = Some(cx.waker().clone());
        }
        is_held
    }
}

/// The stream.
pub(super) struct Noted<S> {
    stream: S,
    writes: Writes,
}

impl<S> Noted<S> {
    pub(super) fn new(stream: S) -> (Self, Writes) {
        let writes = Writes::default();
        (Self { stream, writes: writes.clone() }, writes)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.writes.holds(cx) {
            return Poll::Pending;
        }
        let began = Instant::now();
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            lock(&self.writes.0.at).push(Write { began, ended: Instant::now() });
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test]
    async fn what_was_held_back_is_written_once_released() {
        let (here, mut there) = tokio::io::duplex(64);
        let (mut noted, writes) = Noted::new(here);
        noted.write_all(b"a").await.unwrap();
        let (between, mut read) = (Instant::now(), [0; 2]);
        writes.hold();
        let writing = tokio::spawn(async move { noted.write_all(b"b").await.map(|()| noted) });
        tokio::task::yield_now().await;
        assert!(writes.first_after(between).is_none());
        let released = Instant::now();
        writes.release();
        let _noted = writing.await.unwrap().unwrap();
        there.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"ab");
        assert!(writes.first_after(between).unwrap().began >= released);
        assert!(writes.last_before(between).unwrap().ended <= between);
    }
}
