//! A server that ends TLS, and passes the bytes on.

use super::certificates::Issued;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// TLS in front of a server without it, for as long as this value lives.
pub struct TlsTunnel {
    port: u16,
    serving: JoinHandle<()>,
}

impl TlsTunnel {
    /// Accepts TLS on a free port of `127.0.0.1`, and speaks these protocols (ALPN).
    pub async fn start(certificate: &Issued, to: SocketAddr, protocols: &[&[u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the port").port();
        let mut config = certificate.server(None);
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    let Ok(mut inside) = TcpStream::connect(to).await else { return };
                    // Either side may hang up whenever it wants.
                    let _ended = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Self { port, serving }
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for TlsTunnel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
