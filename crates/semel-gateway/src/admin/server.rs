//! The admin API's listener: few connections, some of them for probes alone (`reserve.rs`), short patience, and a polite end.

use super::access::Peer;
use super::problem::AdminProblem;
use super::reserve::{Connection, Reserve};
use super::{Admin, router};
use crate::listener::pace::Pace;
use crate::listener::{ClientStream, WriteTimeout};
use crate::tls::ServerTls;
use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::IntoResponse as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tower::Service as _;

/// Whom Kubernetes and its like ask.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

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
pub(crate) struct LiveAdmin {
    incumbent: Arc<ArcSwap<Router>>,
    tls: Arc<ArcSwapOption<ServerTls>>,
}

impl LiveAdmin {
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
    if admin.people.is_empty() {
        tracing::warn!("the admin API has no token: it is read-only and serves only this machine");
    }
}

/// Serves the admin API until `stop`, then lets the answers under way go out.
///
/// # Errors
/// The listener cannot be used.
pub async fn serve(listener: TcpListener, admin: Admin, stop: impl Future<Output = ()>) -> io::Result<()> {
    serve_at(listener, LiveAdmin::of(admin), stop).await
}

/// The same, with one that can be replaced meanwhile.
pub(crate) async fn serve_at(
    listener: TcpListener,
    desk: LiveAdmin,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let reserve = Reserve::new();
    let connections = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, peer) = tokio::select! {
            next = next(&listener) => next,
            () = &mut stop => break,
        };
        let Ok(connection) = reserve.open(peer) else {
            // There is less work than there are connections: one of them can always make room.
            tracing::error!("admin API: all connections are in use");
            continue;
        };
        let service = service_fn({
            let (desk, connection) = (desk.clone(), connection.clone());
            move |request: Request<hyper::body::Incoming>| {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(Peer(peer));
                request.extensions_mut().insert(ConnectInfo(peer));
                answer(desk.router(), request, connection.clone())
            }
        });
        let (watcher, tls) = (connections.watcher(), desk.tls.load_full());
        tokio::spawn(async move {
            let serving = async {
                let Some(stream) = open(stream, tls.as_deref()).await else { return };
                let stream = WriteTimeout::new(stream, Pace::pausing(ANSWER_PATIENCE));
                let serving = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_PATIENCE)
                    .serve_connection(TokioIo::new(stream), service);
                if let Err(error) = watcher.watch(serving).await {
                    tracing::debug!(%error, "admin API: a connection broke");
                }
            };
            tokio::select! {
                () = serving => {}
                () = connection.makes_room() => {
                    tracing::debug!(%peer, "admin API: closed an idle connection to make room for another");
                }
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(FAREWELL, connections.shutdown()).await.is_err() {
        tracing::warn!("admin API: some connections were cut off");
    }
    Ok(())
}

/// Agrees on encryption, where there is to be any.
async fn open(stream: TcpStream, tls: Option<&ServerTls>) -> Option<ClientStream> {
    let Some(tls) = tls else { return Some(ClientStream::plain(stream)) };
    match tokio::time::timeout(HEADER_PATIENCE, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(ClientStream::encrypted(stream)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "admin API: TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// Answers a request. Probes are always answered; everything else is work, which there may be too much of.
async fn answer(
    mut router: Router,
    request: Request<Body>,
    connection: Connection,
) -> Result<Response<Body>, Infallible> {
    if PROBES.contains(&request.uri().path()) {
        return router.call(request).await;
    }
    let Some(work) = connection.work() else {
        return Ok(AdminProblem::too_busy().into_response());
    };
    router.call(request).await.map(|answer| work.until_sent(answer))
}

/// The next connection.
async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "admin API: cannot accept a connection");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}
