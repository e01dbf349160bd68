//! Accepts connections, and serves HTTP/1.1 on them within the limits, until it is told to stop.

mod body;
mod link;
mod socket;

pub(crate) use body::AnswerBody;
pub use body::RequestBody;
pub use link::PeerAddress;
pub(crate) use link::{BodyFailure, Link, UnderWay};

use crate::limits::Limits;
use crate::places::Places;
use crate::proxy::Introduction;
use arc_swap::ArcSwap;
use http::{HeaderName, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket::ClientSocket;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, watch};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How much of a connection is buffered before its reading pauses. Bodies go through it: it is not small where heads have to be.
fn buffer_size(limits: &Limits) -> usize {
    limits.header_bytes.max(64 * 1024)
}

/// A request, and the connection that it came over.
pub(crate) struct Arrival {
    pub(crate) request: Request<Incoming>,
    pub(crate) peer: PeerAddress,
    pub(crate) introduction: Arc<Introduction>,
    pub(crate) under_way: UnderWay,
}

/// The connections of one listener.
pub(crate) struct Connections {
    limits: ArcSwap<Limits>,
    slots: Places,
    stopping: watch::Sender<bool>,
}

impl Connections {
    pub(crate) fn new(limits: Arc<Limits>) -> Self {
        let slots = Places::new(limits.connections);
        Self { limits: ArcSwap::new(limits), slots, stopping: watch::channel(false).0 }
    }

    /// Connections that are accepted from now on have these limits.
    pub(crate) fn limit(&self, limits: Arc<Limits>) {
        self.slots.resize(limits.connections);
        self.limits.store(limits);
    }

    /// Accepts and serves until `stop`. What is served then is let go on; see [`closed`](Self::closed).
    pub(crate) async fn serve<F>(
        &self,
        listener: TcpListener,
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
                    let (limits, answer) = (self.limits.load_full(), Arc::clone(&answer));
                    let stopping = self.stopping.subscribe();
                    tokio::spawn(async move {
                        serve_connection(stream, peer, limits, answer, stopping).await;
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
    answer: Arc<impl Fn(Arrival) -> F>,
    mut stopping: watch::Receiver<bool>,
) where
    F: Future<Output = Response<AnswerBody>>,
{
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "TCP_NODELAY cannot be set");
    }
    let link = Link::default();
    let introduction = Arc::default();
    let mut http = http1::Builder::new();
    // Reading has its own time limits, in the socket.
    http.header_read_timeout(None).max_header_size(limits.header_bytes).max_buf_size(buffer_size(&limits));
    let socket = ClientSocket::new(stream, peer, limits, link.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = link.begin(request.headers().contains_key(IDEMPOTENCY_KEY));
        let introduction = Arc::clone(&introduction);
        let answering = answer(Arrival { request, peer: PeerAddress(peer), introduction, under_way });
        async move { Ok::<_, Infallible>(answering.await) }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(socket), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
