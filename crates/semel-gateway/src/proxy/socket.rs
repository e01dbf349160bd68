//! A socket to the service that counts what passes, and can be asked whether the service has hung up.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
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

    fn wrote(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = written {
            self.traffic.written.fetch_add(count as u64, Relaxed);
        }
        written
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
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
