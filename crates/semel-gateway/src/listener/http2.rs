//! One connection of HTTP/2.

use super::connected::Connected;
use super::core_threads::RoundRobinExecutor;
use super::pace::Pace;
use super::stream::ClientStream;
use super::streams::{Overdue, Streams};
use super::{AcceptedRequest, Answers, Client, RequestState, told_to_stop};
use crate::limits::Limits;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use semel::headers::IDEMPOTENCY_KEY;
use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Requests at once on one connection. RFC 9113 advises no less than 100.
const STREAMS: u32 = 100;
/// What a client may send of bodies before they are read, on one stream and on all together. Room for one round trip of a few
/// hundredths of a second at 5 MB/s, and no more, as any number of connections may fill it.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// What is kept of one answer until the client takes it.
const SEND_BUFFER: usize = 64 * 1024;
/// Streams that a client may open and reset before anybody has looked at them, and that may be wrong; past that it is an attack,
/// and the connection is closed.
const RESET_AT_ONCE: usize = 20;
const WRONG: usize = 256;
/// How often a client is asked whether it is still there, and how long it may take to say so.
const SIGN_OF_LIFE_EVERY: Duration = Duration::from_secs(30);
const SIGN_OF_LIFE_WITHIN: Duration = Duration::from_secs(20);
/// How long a client may take to see that its idle connection is closed, and to take the last answer.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves a connection to its end.
pub(super) async fn serve(
    stream: ClientStream,
    client: Client,
    limits: Arc<Limits>,
    service: impl Answers,
    mut stopping: watch::Receiver<bool>,
    executor: RoundRobinExecutor,
    connected: &Connected,
) {
    let peer = client.peer.0;
    let streams = Streams::new(client.begun);
    let mut http = http2::Builder::new(executor);
    http.timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESET_AT_ONCE)
        .max_local_error_reset_streams(WRONG)
        .keep_alive_interval(SIGN_OF_LIFE_EVERY)
        .keep_alive_timeout(SIGN_OF_LIFE_WITHIN);
    connected.speaks_http2(&streams);
    let (begins, body_timeout, pace) = (Arc::clone(&streams), limits.body_timeout, Pace::of(&limits));
    let service = RefCell::new(service);
    let service = service_fn(move |request: Request<Incoming>| {
        let has_key = request.headers().contains_key(IDEMPOTENCY_KEY);
        let under_way =
            RequestState::of_stream(body_timeout, pace).begin_at(has_key, Some(begins.begin(pace)));
        service.borrow_mut().call(AcceptedRequest::new(request, client.clone(), under_way))
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut overdue = pin!(streams.overdue(&limits));
    let mut is_stopping = false;
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = told_to_stop(&mut stopping), if !is_stopping => {
                is_stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            overdue = overdue.as_mut() => {
                tracing::debug!(%peer, ?overdue, "a client is too slow");
                connection.as_mut().graceful_shutdown();
                match overdue {
                    // Whether it has seen it or not. Requests that were on their way meanwhile are answered.
                    Overdue::Idle => tokio::select! {
                        biased;
                        _ended = connection.as_mut() => {}
                        () = async {
                            tokio::time::sleep(FAREWELL).await;
                            streams.others_have_ended(&limits).await;
                            tokio::time::sleep(FAREWELL).await;
                        } => {}
                    },
                    // The library has no way to end the one stream. The others, which may be those of other clients behind a proxy, end
                    // before the connection does.
                    Overdue::NotTaken => tokio::select! {
                        _ended = connection.as_mut() => {}
                        () = streams.others_have_ended(&limits) => {}
                    },
                }
                return;
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}
