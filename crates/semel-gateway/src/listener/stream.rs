//! A client's connection, encrypted or not, and what was read of it before anybody knew which protocol it speaks.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What a client that knows that it is understood begins with: RFC 9113, section 3.4. No request of HTTP/1 looks like it.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

pub(crate) struct ClientStream {
    transport: Transport,
    /// Read already, and not yet handed out.
    early: [u8; PREFACE.len()],
    handed_out: usize,
    filled: usize,
}

enum Transport {
    Plain(TcpStream),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl ClientStream {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        Self::of(Transport::Plain(stream))
    }

    pub(crate) fn encrypted(stream: TlsStream<TcpStream>) -> Self {
        Self::of(Transport::Encrypted(Box::new(stream)))
    }

    fn of(transport: Transport) -> Self {
        Self { transport, early: [0; PREFACE.len()], handed_out: 0, filled: 0 }
    }

    /// Whether anything was read.
    pub(super) fn has_begun(&self) -> bool {
        self.filled > 0
    }

    /// Reads until it is clear which protocol this is, and no further. May be dropped and called again.
    pub(super) async fn protocol(&mut self) -> io::Result<Protocol> {
        loop {
            let read = &self.early[..self.filled];
            if !PREFACE.starts_with(read) {
                return Ok(Protocol::Http1);
            }
            if read.len() == PREFACE.len() {
                return Ok(Protocol::Http2);
            }
            let count = match &mut self.transport {
                Transport::Plain(stream) => stream.read(&mut self.early[self.filled..]).await?,
                Transport::Encrypted(stream) => stream.read(&mut self.early[self.filled..]).await?,
            };
            if count == 0 {
                // HTTP/1 knows what to make of an end.
                return Ok(Protocol::Http1);
            }
            self.filled += count;
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.handed_out < this.filled {
            let early = &this.early[this.handed_out..this.filled];
            let count = early.len().min(buffer.remaining());
            buffer.put_slice(&early[..count]);
            this.handed_out += count;
            return Poll::Ready(Ok(()));
        }
        match &mut this.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Transport::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Transport::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Transport::Encrypted(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(context),
            Transport::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Transport::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
