//! Accepts connections, and serves HTTP on them within the limits, until it is told to stop.
//!
//! - `stream.rs`: a connection, encrypted or not, and which protocol it speaks; `write_timeout.rs`: one that has to take its answers;
//! - `http1/`: HTTP/1.1, behind the framing guard; `tunnel.rs`: what it may be switched to;
//! - `http2.rs`, `streams.rs`: HTTP/2;
//! - `request_state.rs`, `body.rs`: what a request knows of its connection; `connected.rs`: what is known of a connection;
//! - `core_threads.rs`: the threads that serve connections; `pace.rs`: how slow a client may be.

mod body;
mod connected;
pub(crate) mod core_threads;
mod http1;
mod http2;
mod length;
pub(crate) mod pace;
mod request_state;
mod stream;
mod streams;
mod tunnel;
mod write_timeout;

pub(crate) use body::AnswerBody;
pub use body::RequestBody;
pub use request_state::PeerAddress;
pub(crate) use request_state::{BodyFailure, InFlight, RequestState, UnderWay, UnderWayHolder};
pub(crate) use stream::ClientStream;
pub(crate) use tunnel::OtherEnd;
pub(crate) use write_timeout::WriteTimeout;

use crate::capacity::{Party, Permit, Shares};
use crate::headers::{ConnectionOptions, ForwardedHeaders};
use crate::limits::Limits;
use crate::tls::{ServerTls, identity_of};
use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use connected::Connected;
use core_threads::{CoreThreads, RoundRobinExecutor};
use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;
use semel_tower::ShownCredential;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use stream::Protocol;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::Service;

/// How long, and for how many bytes, a client that is still sending is listened to after its answer. Closing at once would reset the
/// connection, and take the answer from it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 4 * 1024 * 1024;

/// Connections that are accepted and wait for others to end, at most. Past it they are closed: those of clients below their share do not wait here.
const WAITING: usize = 1024;

/// How often it is looked whether one that waits can be served now, besides when another has ended.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which peers forward the requests of others.
pub(crate) type Trusts = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// How much of a connection is buffered before its reading pauses. Bodies go through it: it is not small where heads have to be.
fn buffer_size(limits: &Limits) -> usize {
    limits.header_bytes.max(64 * 1024)
}

/// A request whose head has been read, and the connection that it came over.
pub(crate) struct AcceptedRequest {
    pub(crate) parts: Parts,
    pub(crate) body: RequestBody,
    pub(crate) client: Client,
    pub(crate) under_way: UnderWay,
    /// What the client asks its connection for, once that is known.
    pub(crate) asked: ConnectionOptions,
}

impl AcceptedRequest {
    fn new(request: Request<Incoming>, client: Client, under_way: UnderWay) -> Self {
        let (parts, body) = request.into_parts();
        let body = RequestBody::incoming(body, &parts.headers, under_way.state().clone());
        Self { parts, body, client, under_way, asked: ConnectionOptions::default() }
    }

    /// Answers it, without anything of its body being read.
    pub(crate) fn answer(self, answer: Response<Bytes>) -> Response<AnswerBody> {
        answer.map(|bytes| AnswerBody::new(semel_tower::Body::from(bytes), self.under_way))
    }
}

/// What answers the requests of a connection. Each connection has a clone of its own.
pub(crate) trait Answers:
    Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answers for S where
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// Whose connection it is.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) peer: PeerAddress,
    pub(crate) forwarded: Arc<ForwardedHeaders>,
    /// What its certificate says, if it showed one.
    pub(crate) certificate: Option<ShownCredential>,
    /// When it connected.
    begun: Instant,
}

/// The connections of one listener.
pub(crate) struct Connections {
    limits: ArcSwap<Limits>,
    tls: ArcSwapOption<ServerTls>,
    slots: Arc<Shares<Connected>>,
    trusts: ArcSwap<Trusts>,
    stopping: watch::Sender<bool>,
}

impl Connections {
    pub(crate) fn new(limits: Arc<Limits>, tls: Option<Arc<ServerTls>>, trusts: Trusts) -> Self {
        let slots = Shares::new(limits.connections);
        let (limits, tls) = (ArcSwap::new(limits), ArcSwapOption::new(tls));
        let trusts = ArcSwap::from_pointee(trusts);
        Self { limits, tls, slots, trusts, stopping: watch::channel(false).0 }
    }

    /// Connections that are accepted from now on have these limits, and are served with this certificate.
    pub(crate) fn apply_config(&self, limits: Arc<Limits>, tls: Option<Arc<ServerTls>>, trusts: Trusts) {
        self.trusts.store(Arc::new(trusts));
        self.slots.resize(limits.connections);
        self.limits.store(limits);
        self.tls.store(tls);
    }

    /// Accepts and serves until `stop`. What is served then is let go on; see [`closed`](Self::closed).
    pub(crate) async fn serve(
        &self,
        listener: TcpListener,
        threads: &CoreThreads,
        service: impl Answers,
        stop: impl Future<Output = ()>,
    ) {
        let serve = |accepted: Accepted, slot: Slot| {
            let (limits, tls) = (self.limits.load_full(), self.tls.load_full());
            let (service, stopping) = (service.clone(), self.stopping.subscribe());
            let Accepted { stream, peer } = accepted;
            // Out of this runtime, and into that of its core thread.
            let stream = stream.into_std();
            threads.place().run(async move |executor| {
                let connected = &slot.connected;
                match stream.and_then(TcpStream::from_std) {
                    Ok(stream) => tokio::select! {
                        biased;
                        () = serve_connection(stream, peer, limits, tls, service, stopping, executor, connected) => {}
                        () = connected.makes_room() => {
                            tracing::debug!(%peer, "closed an idle connection to make room for another client");
                        }
                    },
                    Err(error) => tracing::error!(%peer, %error, "a connection cannot be served"),
                }
                drop(slot);
            });
        };
        let mut waiting = VecDeque::new();
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = self.slots.returned(), if !waiting.is_empty() => {}
                () = tokio::time::sleep(LOOK_EVERY), if !waiting.is_empty() => {}
                accepted = accept(&listener) => waiting.push_back(accepted),
            }
            for _ in 0..waiting.len() {
                let Some(accepted) = waiting.pop_front() else { break };
                match self.slot(accepted.peer) {
                    Some(slot) => serve(accepted, slot),
                    None => waiting.push_back(accepted),
                }
            }
            if waiting.len() > WAITING {
                // The newest: whoever waits for longer keeps its turn.
                waiting.pop_back();
            }
        }
        drop((waiting, listener));
        self.stopping.send_replace(true);
    }

    /// Room for a connection of this peer. Connections of peers that forward for others are not counted for anybody: whose requests will come over
    /// them is not known.
    fn slot(&self, peer: SocketAddr) -> Option<Slot> {
        let party = (!(self.trusts.load())(peer.ip())).then(|| Party::of(peer.ip()));
        let connected = Connected::default();
        let permit = self.slots.take(party, connected.clone()).ok()?;
        Some(Slot { connected, _permit: permit })
    }

    /// Waits until the last connection is closed.
    pub(crate) async fn closed(&self) {
        self.slots.all_back().await;
    }
}

/// A connection, before anything is known of it but its peer.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
}

/// Room for a connection.
struct Slot {
    connected: Connected,
    _permit: Permit<Connected>,
}

/// The next connection.
async fn accept(listener: &TcpListener) -> Accepted {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Accepted { stream, peer },
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                // Too many open files, most likely: some will be closed soon.
                tracing::error!(%error, "cannot accept connections");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection to its end.
#[allow(clippy::too_many_arguments, reason = "each is used once, by one of two protocols")]
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    limits: Arc<Limits>,
    tls: Option<Arc<ServerTls>>,
    service: impl Answers,
    mut stopping: watch::Receiver<bool>,
    executor: RoundRobinExecutor,
    connected: &Connected,
) {
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
        forwarded: Arc::new(ForwardedHeaders::over(tls.is_some())),
        certificate: opened.certificate,
        begun,
    };
    match opened.protocol {
        Protocol::Http1 => http1::serve(opened.stream, client, limits, service, stopping, connected).await,
        Protocol::Http2 => {
            http2::serve(opened.stream, client, limits, service, stopping, executor, connected).await;
        }
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
