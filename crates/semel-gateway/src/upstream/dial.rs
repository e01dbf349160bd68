//! Connecting to the service, with or without TLS.

use super::UpstreamProtocol;
use super::socket::{ServiceSocket, Traffic};
use super::target::Target;
use crate::tls::{ClientTls, HTTP1, HTTP2};
use semel_tower::BoxError;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// Knows how to connect.
#[derive(Clone)]
pub(super) struct Dial {
    pub(super) target: Arc<Target>,
    pub(super) tls: Option<Arc<ClientTls>>,
    pub(super) protocol: UpstreamProtocol,
    /// For all of it.
    pub(super) timeout: Duration,
}

impl Dial {
    /// Opens a connection to the service.
    pub(super) async fn connect(&self) -> Result<(ServiceStream, Arc<Traffic>), BoxError> {
        tokio::time::timeout(self.timeout, self.connecting())
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn connecting(&self) -> Result<(ServiceStream, Arc<Traffic>), BoxError> {
        let stream = TcpStream::connect((self.target.host.as_str(), self.target.port)).await?;
        stream.set_nodelay(true)?;
        // What is counted is what the system takes: below TLS, which keeps some back.
        let (socket, traffic) = ServiceSocket::new(stream);
        let (Some(name), Some(tls)) = (&self.target.tls, &self.tls) else {
            return Ok((ServiceStream::Plain(socket), traffic));
        };
        let (protocol, is_compulsory) = match self.protocol {
            // Services that know no ALPN speak HTTP/1.1.
            UpstreamProtocol::Http1 => (HTTP1, false),
            UpstreamProtocol::Http2 => (HTTP2, true),
        };
        let stream = tls.connect(name.clone(), socket, protocol).await?;
        if is_compulsory && stream.get_ref().1.alpn_protocol() != Some(protocol) {
            return Err("the service does not offer HTTP/2".into());
        }
        Ok((ServiceStream::Encrypted(Box::new(stream)), traffic))
    }
}

/// A connection to the service, encrypted or not.
pub(super) enum ServiceStream {
    Plain(ServiceSocket),
    Encrypted(Box<TlsStream<ServiceSocket>>),
}

impl AsyncRead for ServiceStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Encrypted(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ServiceStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Encrypted(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Encrypted(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Encrypted(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
