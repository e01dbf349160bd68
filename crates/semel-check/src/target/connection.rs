//! Connections to the API.

use super::held::{Gate, HeldBody, Partly};
use super::written::{Noted, Write, Writes};
use crate::answer::{Answer, NoAnswer, Reply};
use crate::request::Request;
use crate::settings::Settings;
use http::header::{CONTENT_LENGTH, HOST};
use http_body_util::BodyExt as _;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use semel_http::tls::{ClientTls, ClientTlsFiles, HTTP1, HTTP2, TlsError};
use semel_http::{Endpoint, with_causes};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

/// How long a connection may take to be opened.
const CONNECTING: Duration = Duration::from_secs(10);
/// More of an answer is not read.
const LONGEST: usize = 4 << 20;

/// Opens connections.
pub(super) struct Dialer {
    nodes: Vec<Endpoint>,
    tls: Option<ClientTls>,
    http2: bool,
    /// Names that resolve elsewhere are refused, unless they were allowed.
    loopback_only: Vec<bool>,
}

/// One connection, on which HTTP was agreed.
pub(super) struct Connection {
    authority: String,
    is_https: bool,
    sender: Sender,
    writes: Writes,
    /// Drives the connection; ends with it.
    driver: AbortHandle,
}

enum Sender {
    Http1(http1::SendRequest<HeldBody>),
    Http2(http2::SendRequest<HeldBody>),
}

impl Dialer {
    pub(super) fn new(plan: &Settings) -> Result<Self, TlsError> {
        let nodes: Vec<Endpoint> = [&plan.target].into_iter().chain(&plan.also).cloned().collect();
        let tls = nodes
            .iter()
            .any(Endpoint::is_https)
            .then(|| ClientTls::start(ClientTlsFiles { ca: plan.ca.clone(), ..ClientTlsFiles::default() }));
        let loopback_only = nodes.iter().map(|node| !plan.is_named(node.host())).collect();
        Ok(Self { tls: tls.transpose()?, http2: plan.http2, loopback_only, nodes })
    }

    pub(super) async fn accepts(&self) -> bool {
        self.dial(0).await.is_ok()
    }

    async fn dial(&self, node: usize) -> Result<TcpStream, NoAnswer> {
        let endpoint = self.nodes.get(node).ok_or_else(|| NoAnswer::Connect("no such node".into()))?;
        let failed = |error: std::io::Error| NoAnswer::Connect(error.to_string());
        let dialing = TcpStream::connect((endpoint.host(), endpoint.port()));
        let stream = tokio::time::timeout(CONNECTING, dialing)
            .await
            .map_err(|_| NoAnswer::Connect("it takes too long".into()))?
            .map_err(failed)?;
        if self.loopback_only[node] && !stream.peer_addr().map_err(failed)?.ip().is_loopback() {
            return Err(NoAnswer::Connect(format!(
                "{} leads to another machine: add --allow-host",
                endpoint.host()
            )));
        }
        stream.set_nodelay(true).map_err(failed)?;
        Ok(stream)
    }

    pub(super) async fn open(&self, node: usize) -> Result<Connection, NoAnswer> {
        let (stream, writes) = Noted::new(self.dial(node).await?);
        let endpoint = &self.nodes[node];
        let (sender, driver) = match &self.tls {
            Some(tls) if endpoint.is_https() => {
                let failed = |error: std::io::Error| NoAnswer::Connect(format!("TLS: {error}"));
                let name = ServerName::try_from(endpoint.host().to_owned())
                    .map_err(|error| NoAnswer::Connect(error.to_string()))?;
                let protocol = if self.http2 { HTTP2 } else { HTTP1 };
                let shaking = tls.connect(name, stream, protocol);
                let stream = tokio::time::timeout(CONNECTING, shaking)
                    .await
                    .map_err(|_| NoAnswer::Connect("TLS takes too long".into()))?
                    .map_err(failed)?;
                self.handshake(stream).await?
            }
            _ => self.handshake(stream).await?,
        };
        let (authority, is_https) = (endpoint.authority().to_owned(), endpoint.is_https());
        Ok(Connection { authority, is_https, sender, writes, driver })
    }

    async fn handshake<S>(&self, stream: S) -> Result<(Sender, AbortHandle), NoAnswer>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let failed = |error: hyper::Error| NoAnswer::Connect(with_causes(&error));
        let stream = TokioIo::new(stream);
        Ok(if self.http2 {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), stream).await.map_err(failed)?;
            (Sender::Http2(sender), tokio::spawn(connection).abort_handle())
        } else {
            let (sender, connection) = http1::handshake(stream).await.map_err(failed)?;
            (Sender::Http1(sender), tokio::spawn(connection).abort_handle())
        })
    }
}

impl Connection {
    /// Another handle to the same HTTP/2 connection.
    pub(super) fn share(&self) -> Option<Self> {
        let Sender::Http2(sender) = &self.sender else { return None };
        Some(Self {
            authority: self.authority.clone(),
            is_https: self.is_https,
            sender: Sender::Http2(sender.clone()),
            writes: self.writes.clone(),
            driver: self.driver.clone(),
        })
    }

    /// What leaves this connection, if it carries several requests at once.
    pub(super) fn shared_writes(&self) -> Option<Writes> {
        matches!(self.sender, Sender::Http2(_)).then(|| self.writes.clone())
    }

    /// Sends a request, with its last byte held back by the gate if there is one, and reads the answer.
    pub(super) async fn send(&mut self, request: &Request, gate: Option<Gate>) -> Reply {
        let gate = match gate {
            // Without a body it is the head that is held back.
            Some(gate) if request.body.is_empty() => {
                gate.pass().await;
                None
            }
            gate => gate,
        };
        let began = Instant::now();
        let is_held = gate.is_some();
        let body = HeldBody::new(&request.body, gate);
        let handed_over = body.handed_over();
        let answering = self.dispatch(request, body)?;
        let broken = |error: hyper::Error| NoAnswer::Broken(with_causes(&error));
        let response = answering.await.map_err(broken)?;
        let came = Instant::now();
        let handed_over = if is_held { handed_over.at() } else { Some(handed_over.at().unwrap_or(began)) };
        let written = self.last_byte_written(handed_over, came);
        let (sending, sent) =
            written.map_or((came, came), |write| (write.began.min(came), write.ended.min(came)));
        let (head, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame.map_err(broken)?.data_ref() {
                bytes.extend_from_slice(&data[..data.len().min(LONGEST - bytes.len())]);
                if bytes.len() >= LONGEST {
                    break;
                }
            }
        }
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: bytes.into(),
            sending,
            sent,
            came,
        })
    }

    /// The write of the last byte of a request that was answered at `came`. `None` if it was answered before it was complete.
    fn last_byte_written(&self, handed_over: Option<Instant>, came: Instant) -> Option<Write> {
        let handed_over = handed_over?;
        match self.sender {
            // The connection carries this request alone.
            Sender::Http1(_) => self.writes.last_before(came).filter(|write| write.began >= handed_over),
            // Others write to it too.
            Sender::Http2(_) => self.writes.first_after(handed_over).filter(|write| write.began <= came),
        }
    }

    /// Sends a request or half of it, and returns without waiting for an answer.
    pub(super) async fn begin(mut self, request: &Request, how_much: Partly) -> Result<Begun, NoAnswer> {
        let (body, written) = HeldBody::in_parts(&request.body, how_much);
        let answering = self.dispatch(request, body)?;
        let status = Arc::new(AtomicU16::new(0));
        let noted = Arc::clone(&status);
        // Continues after this returns, for as long as the connection lives.
        tokio::spawn(async move {
            if let Ok(answer) = answering.await {
                noted.store(answer.status().as_u16(), Ordering::SeqCst);
            }
        });
        // The connection's task has taken the bytes; a moment for the system to send them.
        let _gone = tokio::time::timeout(Duration::from_secs(5), written).await;
        let moment = if how_much == Partly::Whole { 1 } else { 5 };
        tokio::time::sleep(Duration::from_millis(moment)).await;
        Ok(Begun { _connection: self, status })
    }

    fn dispatch(
        &mut self,
        request: &Request,
        body: HeldBody,
    ) -> Result<
        impl Future<Output = hyper::Result<hyper::Response<hyper::body::Incoming>>> + Send + use<>,
        NoAnswer,
    > {
        let is_http2 = matches!(self.sender, Sender::Http2(_));
        let uri = http::Uri::builder().path_and_query(request.path.as_str());
        let uri = if is_http2 {
            let scheme = if self.is_https { "https" } else { "http" };
            uri.scheme(scheme).authority(self.authority.as_str()).build()
        } else {
            uri.build()
        };
        let unsendable = |error: http::Error| NoAnswer::Broken(format!("it cannot be sent: {error}"));
        let mut message = hyper::Request::new(body);
        *message.method_mut() = request.method.clone();
        *message.uri_mut() = uri.map_err(unsendable)?;
        *message.headers_mut() = request.headers.clone();
        if !is_http2 && !request.headers.contains_key(HOST) {
            let host = self
                .authority
                .parse()
                .map_err(|error: http::header::InvalidHeaderValue| NoAnswer::Broken(error.to_string()))?;
            message.headers_mut().insert(HOST, host);
        }
        message.headers_mut().insert(CONTENT_LENGTH, request.body.len().into());
        Ok(match &mut self.sender {
            Sender::Http1(sender) => Sending::Http1(sender.send_request(message)),
            Sender::Http2(sender) => Sending::Http2(sender.send_request(message)),
        }
        .run())
    }
}

/// A request that was sent, or a part of it. Dropped, it closes the connection.
pub(crate) struct Begun {
    _connection: Connection,
    /// 0 as long as there is no answer.
    status: Arc<AtomicU16>,
}

impl Begun {
    /// Whether the answer has begun to come.
    pub(crate) fn is_answered(&self) -> bool {
        self.status.load(Ordering::SeqCst) != 0
    }

    /// Whether it succeeded. When an API dies, a proxy in front of it answers with an error.
    pub(crate) fn has_succeeded(&self) -> bool {
        (200..400).contains(&self.status.load(Ordering::SeqCst))
    }
}

/// The two kinds of a request under way.
enum Sending<A, B> {
    Http1(A),
    Http2(B),
}

impl<A: Future, B: Future<Output = A::Output>> Sending<A, B> {
    async fn run(self) -> A::Output {
        match self {
            Self::Http1(sending) => sending.await,
            Self::Http2(sending) => sending.await,
        }
    }
}

impl Drop for Connection {
    /// Hangs up. Handles that share an HTTP/2 connection end together.
    fn drop(&mut self) {
        self.driver.abort();
    }
}
