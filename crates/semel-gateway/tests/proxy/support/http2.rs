//! A client that speaks HTTP/2.

use super::{Answer, KEY};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub(crate) struct Http2 {
    pub(crate) sender: SendRequest<Bytes>,
    /// Ends with the connection.
    pub(crate) driver: JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap()).await
    }

    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        Self { sender, driver: tokio::spawn(connection) }
    }

    /// Begins a request.
    pub(crate) async fn begin(
        &self,
        request: Request<()>,
        ends: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        self.sender.clone().ready().await.unwrap().send_request(request, ends).unwrap()
    }

    /// Sends a request, and waits for its whole answer.
    pub(crate) async fn send(&self, request: Request<&'static str>) -> Answer {
        let (parts, body) = request.into_parts();
        let (answering, mut stream) = self.begin(Request::from_parts(parts, ()), body.is_empty()).await;
        if !body.is_empty() {
            stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
        }
        whole(answering).await.0
    }
}

/// A payment, with the key of most requests.
pub(crate) fn payment() -> Request<&'static str> {
    payment_with(KEY)
}

pub(crate) fn payment_with(key: &str) -> Request<&'static str> {
    Request::post("http://shop.example/payments")
        .header("idempotency-key", key)
        .header("content-type", "application/json")
        .body(r#"{"amount":"10.00"}"#)
        .unwrap()
}

/// An answer, and its trailers.
pub(crate) async fn whole(answering: ResponseFuture) -> (Answer, Option<HeaderMap>) {
    let answer = tokio::time::timeout(PATIENCE, answering).await.expect("every answer comes in bounded time");
    let (parts, mut stream) = answer.unwrap().into_parts();
    let headers = parts.headers.iter();
    let mut answer = Answer {
        status: parts.status.as_u16(),
        headers: headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().into())).collect(),
        body: Vec::new(),
    };
    while let Some(piece) = next(&mut stream).await {
        answer.body.extend_from_slice(&piece);
    }
    let trailers = stream.trailers().await.unwrap();
    (answer, trailers)
}

/// The next piece of an answer.
pub(crate) async fn next(stream: &mut RecvStream) -> Option<Bytes> {
    let piece =
        tokio::time::timeout(PATIENCE, stream.data()).await.expect("every piece comes in bounded time");
    let piece = piece?.unwrap();
    stream.flow_control().release_capacity(piece.len()).unwrap();
    Some(piece)
}
