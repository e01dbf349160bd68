//! Connections. They are served one by one with hyper, and not by `axum::serve`, because a provider that misbehaves has to be
//! able to close one without a byte of an answer.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt as _;

/// Connections at the same time; the others wait to be accepted.
const MOST: usize = 4096;
/// What has begun may take this long after the end was asked for.
const FAREWELL: Duration = Duration::from_secs(3);

/// Stands for an answer that is never sent: the connection is closed instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is closed on purpose")]
pub(crate) struct Closed;

impl IntoResponse for Closed {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        response.extensions_mut().insert(self);
        response
    }
}

pub(crate) async fn serve(listener: TcpListener, router: Router, mut stopped: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST));
    let mut connections = JoinSet::new();
    let for_each = stopped.clone();
    let accept = async {
        loop {
            // Only a closed semaphore has no permit, and nobody closes this one.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), for_each.clone());
                    connections.spawn(async {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    // Out of file descriptors, most likely: that passes, and trying at once would not help.
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accept => {}
        () = stop(&mut stopped) => {}
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(FAREWELL, ended).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(stream: TcpStream, router: Router, mut stopped: watch::Receiver<bool>) {
    // An answer is one small write: waiting for more to send with it would only delay it.
    let _as_it_was = stream.set_nodelay(true);
    let service =
        service_fn(move |request: hyper::Request<Incoming>| answer(router.clone(), request.map(Body::new)));
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    // Errors are of the connection: a client that went away, or one that was sent away.
    tokio::select! {
        _ended = connection.as_mut() => {}
        () = stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            let _ended = connection.await;
        }
    }
}

/// Comes when it is told to stop, or when nobody is left to tell it.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    let _told = stopped.wait_for(|stopped| *stopped).await;
}

/// An error makes hyper close the connection without a word.
async fn answer(router: Router, request: Request) -> Result<Response, Closed> {
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    match response.extensions().get::<Closed>() {
        Some(closed) => Err(*closed),
        None => Ok(response),
    }
}
