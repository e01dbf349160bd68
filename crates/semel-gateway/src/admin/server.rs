//! The admin API's listener: few connections, short patience, and a polite end.

use super::access::Peer;
use super::{Admin, router};
use crate::server::{ClientStream, Impatient};
use crate::tls::ServerTls;
use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service as _;

/// Connections at once. It serves a few people, probes and scrapers: who comes after that waits to be accepted.
const CONNECTIONS: usize = 64;

/// How long a request may take to send its head. A connection that says nothing must not take up a place for ever.
const HEADER_PATIENCE: Duration = Duration::from_secs(10);

/// How long an answer may wait for its client to take some of it, likewise.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// How long answers under way may take once the process is to stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// After an `accept` that failed for want of file descriptors: some may be free again by then.
const BREATH: Duration = Duration::from_millis(100);

/// The admin API that answers, in whose place another one can be put between two requests. Clones are the same.
#[derive(Clone)]
pub(crate) struct AdminSeat {
    incumbent: Arc<ArcSwap<Router>>,
    tls: Arc<ArcSwapOption<ServerTls>>,
}

impl AdminSeat {
    pub(crate) fn of(admin: Admin) -> Self {
        warn_without_token(&admin);
        let tls = Arc::new(ArcSwapOption::new(admin.tls.clone()));
        Self { incumbent: Arc::new(ArcSwap::from_pointee(router(admin))), tls }
    }

    /// Requests that begin from now on are the next one's, and connections that are accepted from now on are served with its certificate.
    pub(crate) fn take(&self, next: Admin) {
        self.tls.store(next.tls.clone());
        self.incumbent.store(Arc::new(router(next)));
    }

    fn router(&self) -> Router {
        Router::clone(&self.incumbent.load())
    }
}

fn warn_without_token(admin: &Admin) {
    if admin.token.is_none() {
        tracing::warn!("the admin API has no token: it answers to this machine alone, and changes nothing");
    }
}

/// Serves the admin API until `stop`, then lets the answers under way go out.
///
/// # Errors
/// The listener cannot be used.
pub async fn serve(listener: TcpListener, admin: Admin, stop: impl Future<Output = ()>) -> io::Result<()> {
    serve_at(listener, AdminSeat::of(admin), stop).await
}

/// The same, with one that can be replaced meanwhile.
pub(crate) async fn serve_at(
    listener: TcpListener,
    desk: AdminSeat,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, peer, place) = tokio::select! {
            next = next(&listener, &places) => next,
            () = &mut stop => break,
        };
        let service = service_fn({
            let desk = desk.clone();
            move |request: Request<hyper::body::Incoming>| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Peer(peer));
                desk.router().call(request)
            }
        });
        let (watcher, tls) = (connections.watcher(), desk.tls.load_full());
        tokio::spawn(async move {
            let Some(stream) = open(stream, tls.as_deref()).await else { return };
            let stream = Impatient::new(stream, ANSWER_PATIENCE);
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_PATIENCE)
                .serve_connection(TokioIo::new(stream), service);
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection to the admin API broke");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(FAREWELL, connections.shutdown()).await.is_err() {
        tracing::warn!("some connections to the admin API were cut off");
    }
    Ok(())
}

/// Agrees on encryption, where there is to be any.
async fn open(stream: TcpStream, tls: Option<&ServerTls>) -> Option<ClientStream> {
    let Some(tls) = tls else { return Some(ClientStream::plain(stream)) };
    match tokio::time::timeout(HEADER_PATIENCE, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(ClientStream::encrypted(stream)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a connection to the admin API did not agree on TLS");
            None
        }
        Err(_) => None,
    }
}

/// The next connection, once there is a place for it.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, place),
            Err(error) => {
                tracing::warn!(%error, "a connection to the admin API could not be accepted");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}
