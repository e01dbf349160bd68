//! A socket to the service that counts what passes, can be asked whether the service has hung up, and sends nothing for an owner whose right
//! to execute has ended.

use semel::{Right, RightEnded};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What the HTTP library reads from and writes to.
pub(super) struct ServiceSocket {
    stream: TcpStream,
    traffic: Arc<Traffic>,
}

/// What passed over a socket.
#[derive(Default)]
pub(super) struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
    is_probed: AtomicBool,
    /// The system takes nothing more at the moment.
    is_stalled: AtomicBool,
    /// Who waits until it does.
    waiting: Mutex<Vec<Waker>>,
    guard: Mutex<Option<Guard>>,
}

/// On whose behalf everything is sent that is sent now.
struct Guard {
    right: Right,
    /// The right has ended, and all that there was to send is sent.
    is_whole: bool,
}

impl Traffic {
    /// How many bytes the system has taken. What it has not taken, the service cannot have seen.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// How many bytes have come.
    pub(super) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Changes with every byte either way.
    pub(super) fn total(&self) -> u64 {
        self.read.load(Relaxed) + self.written.load(Relaxed)
    }

    /// The next read is to ask the system itself. The runtime may not have heard yet that the service has hung up.
    pub(super) fn probe_next_read(&self) {
        self.is_probed.store(true, Relaxed);
    }

    /// Ties what is sent from now on to this right: nothing is sent once it has ended. `None`: sending is tied to no right.
    pub(super) fn send_by(&self, right: Option<&Right>) {
        *self.guard() = right.map(|right| Guard { right: right.clone(), is_whole: false });
    }

    /// Ready while the system takes what is written, and once the connection is gone.
    pub(super) fn poll_flowing(&self, context: &mut Context<'_>) -> Poll<()> {
        if !self.is_stalled.load(Relaxed) {
            return Poll::Ready(());
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
        drop(waiting);
        // It may have begun to flow before anybody was waiting.
        if self.is_stalled.load(Relaxed) { Poll::Pending } else { Poll::Ready(()) }
    }

    fn guard(&self) -> MutexGuard<'_, Option<Guard>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Right before a write: whether it may be made.
    fn may_write(&self) -> Result<(), RightEnded> {
        self.guard().as_ref().map_or(Ok(()), |guard| guard.right.check())
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(Ok(count)) => {
                self.written.fetch_add(*count as u64, Relaxed);
                self.flows();
            }
            Poll::Pending => self.is_stalled.store(true, Relaxed),
            // Whoever goes on finds out.
            Poll::Ready(Err(_)) => self.flows(),
        }
    }

    fn flows(&self) {
        if self.is_stalled.load(Relaxed) {
            self.is_stalled.store(false, Relaxed);
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *waiting).into_iter().for_each(Waker::wake);
        }
    }

    /// Whether the probe was made.
    pub(super) fn was_probed(&self) -> bool {
        !self.is_probed.load(Relaxed)
    }
}

impl ServiceSocket {
    pub(super) fn new(stream: TcpStream) -> (Self, Arc<Traffic>) {
        let traffic = Arc::new(Traffic::default());
        (Self { stream, traffic: Arc::clone(&traffic) }, traffic)
    }

    /// Whether nothing has come in, and nothing is wrong: an error is returned for everything else.
    fn is_quiet(&self) -> io::Result<()> {
        let mut byte = [MaybeUninit::uninit()];
        match socket2::SockRef::from(&self.stream).peek(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
            // Nobody asked for anything: whatever came, or the end, this connection is of no use.
            Ok(_) => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Breaks the request off: what the system has not sent yet is thrown away with the connection. The service sees an error, not an end.
    fn break_off(&self, ended: RightEnded) -> io::Error {
        if let Err(error) = self.stream.set_zero_linger() {
            tracing::debug!(%error, "cannot reset a connection to the service; closing it");
        }
        io::Error::other(ended)
    }

    /// All that was written is with the system. If the right to execute has ended, it has to be on its way too: what the service has no room
    /// for would reach it whenever it reads on.
    fn check_sent(&self) -> io::Result<()> {
        let mut guard = self.traffic.guard();
        let Some(guard) = guard.as_mut().filter(|guard| !guard.is_whole) else { return Ok(()) };
        let Err(ended) = guard.right.check_cheaply() else { return Ok(()) };
        if self.has_unsent() {
            return Err(self.break_off(ended));
        }
        guard.is_whole = true;
        Ok(())
    }

    /// Whether the system holds bytes that it could not send yet. It does not say how many, only whether the socket is writable;
    /// for a moment, writable is taken for "everything is sent".
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn has_unsent(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let socket = socket2::SockRef::from(&self.stream);
        if socket.set_tcp_notsent_lowat(1).is_err() {
            return false;
        }
        let mut asked = [PollFd::new(&self.stream, PollFlags::OUT)];
        let answered = poll(&mut asked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let is_writable = !asked[0].revents().is_empty();
        // As it was: by the system's own setting.
        let _ = socket.set_tcp_notsent_lowat(0);
        answered.is_ok() && !is_writable
    }

    /// Other systems cannot be asked: what they took counts as sent.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn has_unsent(&self) -> bool {
        false
    }
}

/// Nobody waits for a connection that is gone.
impl Drop for ServiceSocket {
    fn drop(&mut self) {
        self.traffic.flows();
    }
}

impl AsyncRead for ServiceSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.traffic.is_probed.swap(false, Relaxed) {
            self.is_quiet()?;
        }
        let from = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.traffic.read.fetch_add((buffer.filled().len() - from) as u64, Relaxed);
        read
    }
}

impl AsyncWrite for ServiceSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.traffic.may_write().map_err(|ended| self.break_off(ended))?;
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.traffic.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.traffic.may_write().map_err(|ended| self.break_off(ended))?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.traffic.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_sent()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
