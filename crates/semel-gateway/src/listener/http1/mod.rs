//! One connection of HTTP/1.1.
//!
//! `socket.rs` is what hyper reads from and writes to; `framing.rs` guards it against ambiguous framing.

mod framing;
mod socket;

use super::connected::Connected;
use super::stream::ClientStream;
use super::{AcceptedRequest, Answers, Client, RequestState, buffer_size, told_to_stop, tunnel};
use crate::limits::Limits;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use semel::headers::IDEMPOTENCY_KEY;
use socket::ClientSocket;
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::watch;

/// Serves a connection to its end.
pub(super) async fn serve(
    stream: ClientStream,
    client: Client,
    limits: Arc<Limits>,
    service: impl Answers,
    mut stopping: watch::Receiver<bool>,
    connected: &Connected,
) {
    let peer = client.peer.0;
    let state = RequestState::default();
    connected.speaks_http1(&state);
    let mut http = http1::Builder::new();
    // Reading has its own time limits, in the socket.
    http.header_read_timeout(None).max_header_size(limits.header_bytes).max_buf_size(buffer_size(&limits));
    let socket = ClientSocket::new(stream, peer, client.begun, Arc::clone(&limits), state.clone());
    let links = state.clone();
    let service = RefCell::new(service);
    let service = service_fn(move |request: Request<Incoming>| {
        let under_way = links.begin(request.headers().contains_key(IDEMPOTENCY_KEY));
        service.borrow_mut().call(AcceptedRequest::new(request, client.clone(), under_way))
    });
    let mut connection = http.serve_connection(TokioIo::new(socket), service);
    let ended = tokio::select! {
        biased;
        ended = &mut connection => ended,
        () = told_to_stop(&mut stopping) => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
        return;
    }
    if let Some(other_end) = state.take_other_end() {
        let parts = connection.into_parts();
        // A tunnel may last long: it keeps nothing of the stack that began it.
        drop(parts.service);
        // Tunnels seldom end by themselves: half of the time is left for what does.
        let grace = limits.drain / 2;
        let passed = tunnel::run(parts.io.into_inner(), parts.read_buf, other_end, stopping, grace).await;
        tracing::debug!(%peer, ?passed, "a tunnel ended");
    }
}
