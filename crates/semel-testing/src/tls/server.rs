//! Answers every HTTP/1.1 request over TLS with the same bytes, and remembers the requests.

use super::certificates::{Authority, Issued};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// A server on this machine, which ends with this value.
pub struct HttpsServer {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl HttpsServer {
    /// Serves with a certificate, on a free port of `127.0.0.1`. With `clients`, clients must show a certificate of that authority.
    /// `answer` is the whole of each answer: head and body.
    pub async fn start(certificate: &Issued, clients: Option<&Authority>, answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the port").port();
        let acceptor = TlsAcceptor::from(Arc::new(config(certificate, clients)));
        let (requests, answer) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<str>::from(answer.into()));
        let received = Arc::clone(&requests);
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, received, answer) =
                    (acceptor.clone(), Arc::clone(&received), Arc::clone(&answer));
                connections.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    while let Some(request) = request(&mut stream).await {
                        received.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                        if stream.write_all(answer.as_bytes()).await.is_err() || stream.flush().await.is_err()
                        {
                            return;
                        }
                    }
                });
            }
        });
        Self { port, requests, serving }
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it was sent: head and body of each request.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Issued {
    /// What a server needs to show this certificate. With `clients`, clients must show one of that authority.
    #[must_use]
    pub fn server(&self, clients: Option<&Authority>) -> ServerConfig {
        config(self, clients)
    }
}

fn config(issued: &Issued, clients: Option<&Authority>) -> ServerConfig {
    let chain = CertificateDer::pem_file_iter(&issued.certificate).expect("the certificate");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("the certificate");
    let key = PrivateKeyDer::from_pem_file(&issued.key).expect("its key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS");
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_file(authority.ca()).expect("the authority")).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    builder.with_single_cert(chain, key).expect("a certificate and its key")
}

/// One request; `None` at the end of the connection.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap_or(0))];
    stream.read_exact(&mut body).await.ok()?;
    bytes.extend(body);
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
