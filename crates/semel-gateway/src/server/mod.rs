//! Accepts connections, and serves HTTP on them within the limits, until it is told to stop.
//!
//! - `stream.rs`: a connection, encrypted or not, and which protocol it speaks; `impatient.rs`: one that has to take its answers;
//! - `http1.rs`, `socket.rs`: HTTP/1.1, behind the framing guard; `tunnel.rs`: what it may be switched to;
//! - `http2.rs`, `streams.rs`: HTTP/2;
//! - `link.rs`, `body.rs`: what a request knows of its connection.

mod body;
mod http1;
mod http2;
mod impatient;
mod length;
mod link;
mod socket;
mod stream;
mod streams;
mod tunnel;

pub(crate) use body::AnswerBody;
pub use body::RequestBody;
pub(crate) use impatient::Impatient;
pub use link::PeerAddress;
pub(crate) use link::{BodyFailure, Link, UnderWay};
pub(crate) use stream::ClientStream;
pub(crate) use tunnel::OtherEnd;

use crate::lanes::{Dealer, Lanes};
use crate::limits::Limits;
use crate::places::Places;
use crate::proxy::Introduction;
use crate::tls::{ServerTls, identity_of};
use arc_swap::{ArcSwap, ArcSwapOption};
use http::{HeaderName, Request, Response};
use hyper::body::Incoming;
use semel_tower::ShownCredential;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stream::Protocol;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How much of a connection is buffered before its reading pauses. Bodies go through it: it is not small where heads have to be.
fn buffer_size(limits: &Limits) -> usize {
    limits.header_bytes.max(64 * 1024)
}

/// A request, and the connection that it came over.
pub(crate) struct Arrival {
    pub(crate) request: Request<Incoming>,
    pub(crate) client: Client,
    pub(crate) under_way: UnderWay,
}

/// Whose connection it is.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) peer: PeerAddress,
    pub(crate) introduction: Arc<Introduction>,
    /// What its certificate says, if it showed one.
    pub(crate) certificate: Option<ShownCredential>,
    /// When it connected.
    begun: Instant,
}

/// The connections of one listener.
pub(crate) struct Connections {
    limits: ArcSwap<Limits>,
    tls: ArcSwapOption<ServerTls>,
    slots: Places,
    stopping: watch::Sender<bool>,
}

impl Connections {
    pub(crate) fn new(limits: Arc<Limits>, tls: Option<Arc<ServerTls>>) -> Self {
        let slots = Places::new(limits.connections);
        let (limits, tls) = (ArcSwap::new(limits), ArcSwapOption::new(tls));
        Self { limits, tls, slots, stopping: watch::channel(false).0 }
    }

    /// Connections that are accepted from now on have these limits, and are served with this certificate.
    pub(crate) fn go_by(&self, limits: Arc<Limits>, tls: Option<Arc<ServerTls>>) {
        self.slots.resize(limits.connections);
        self.limits.store(limits);
        self.tls.store(tls);
    }

    /// Accepts and serves until `stop`. What is served then is let go on; see [`closed`](Self::closed).
    pub(crate) async fn serve<F>(
        &self,
        listener: TcpListener,
        lanes: &Lanes,
        answer: impl Fn(Arrival) -> F + Send + Sync + 'static,
        stop: impl Future<Output = ()>,
    ) where
        F: Future<Output = Response<AnswerBody>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                (stream, peer, slot) = self.accept(&listener) => {
                    let (limits, tls) = (self.limits.load_full(), self.tls.load_full());
                    let (answer, stopping) = (Arc::clone(&answer), self.stopping.subscribe());
                    // Out of this runtime, and into that of its lane.
                    let stream = stream.into_std();
                    lanes.place().run(async move |dealer| {
                        match stream.and_then(TcpStream::from_std) {
                            Ok(stream) => {
                                serve_connection(stream, peer, limits, tls, answer, stopping, dealer).await;
                            }
                            Err(error) => tracing::error!(%peer, %error, "a connection cannot be served"),
                        }
                        drop(slot);
                    });
                }
            }
        }
        drop(listener);
        self.stopping.send_replace(true);
    }

    /// Waits until the last connection is closed.
    pub(crate) async fn closed(&self) {
        self.slots.all_back().await;
    }

    /// The next connection, once there is room for one. Those that wait meanwhile wait in the system's queue: answering them
    /// would take the very room that is lacking.
    async fn accept(&self, listener: &TcpListener) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        loop {
            let Ok(slot) = self.slots.take().await else {
                // Nobody closes the semaphore.
                return std::future::pending().await;
            };
            match listener.accept().await {
                Ok((stream, peer)) => return (stream, peer, slot),
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    // Too many open files, most likely: some will be closed soon.
                    tracing::error!(%error, "no connection can be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve_connection<F>(
    stream: TcpStream,
    peer: SocketAddr,
    limits: Arc<Limits>,
    tls: Option<Arc<ServerTls>>,
    answer: Arc<impl Fn(Arrival) -> F>,
    mut stopping: watch::Receiver<bool>,
    dealer: Dealer,
) where
    F: Future<Output = Response<AnswerBody>> + Send + 'static,
{
    let begun = Instant::now();
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "TCP_NODELAY cannot be set");
    }
    let opening = open(stream, tls.as_deref(), &mut stopping);
    let opened = match tokio::time::timeout_at(begun + limits.header_timeout, opening).await {
        Ok(Ok(Some(opened))) => opened,
        Ok(Err(error)) => {
            return tracing::debug!(%peer, %error, "a connection ended before its first request");
        }
        // It has sent nothing, and is not waited for any longer.
        Ok(Ok(None)) | Err(_) => return,
    };
    let client = Client {
        peer: PeerAddress(peer),
        introduction: Arc::new(Introduction::over(tls.is_some())),
        certificate: opened.certificate,
        begun,
    };
    match opened.protocol {
        Protocol::Http1 => http1::serve(opened.stream, client, limits, answer, stopping).await,
        Protocol::Http2 => http2::serve(opened.stream, client, limits, answer, stopping, dealer).await,
    }
}

/// A connection that has begun.
struct Opened {
    stream: ClientStream,
    protocol: Protocol,
    certificate: Option<ShownCredential>,
}

/// Finds out which protocol a connection speaks; none if it has sent nothing by the time that everything is to stop. Until its first
/// bytes there is nothing of the library's for it: connections that only wait cost little.
async fn open(
    stream: TcpStream,
    tls: Option<&ServerTls>,
    stopping: &mut watch::Receiver<bool>,
) -> io::Result<Option<Opened>> {
    let (mut stream, certificate) = match tls {
        None => (ClientStream::plain(stream), None),
        Some(tls) => {
            let stream = tokio::select! {
                accepted = tls.accept(stream) => accepted?,
                () = told_to_stop(stopping) => return Ok(None),
            };
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let certificate = certificate.map(identity_of).transpose()?;
            (ClientStream::encrypted(stream), certificate)
        }
    };
    let protocol = tokio::select! {
        biased;
        protocol = stream.protocol() => protocol?,
        () = told_to_stop(stopping) => {
            if !stream.has_begun() {
                return Ok(None);
            }
            stream.protocol().await?
        }
    };
    Ok(Some(Opened { stream, protocol, certificate }))
}

/// Waits until everything is to stop.
async fn told_to_stop(stopping: &mut watch::Receiver<bool>) {
    // An error: nobody is there any more to tell.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
