//! One HTTP request over one connection, so that nothing is retried or shared behind our back.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error("no connection to the service: {0}")]
    Connect(#[from] std::io::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the answer was cut off, or is longer than {LONGEST} bytes: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("no answer within {0:?}")]
    TooLate(Duration),
}

/// Longer than any answer that we ask for; whoever sends more is not who we think.
const LONGEST: usize = 64 * 1024 * 1024;

/// Sends a request and waits for its answer. Whoever drops the future hangs up.
pub(crate) async fn exchange(
    address: impl ToSocketAddrs,
    request: Request<Full<Bytes>>,
    patience: Duration,
) -> Result<Response<Bytes>, ExchangeError> {
    let exchanging = async {
        let stream = TcpStream::connect(address).await?;
        exchange_over(stream, request).await
    };
    timeout(patience, exchanging).await.unwrap_or(Err(ExchangeError::TooLate(patience)))
}

async fn exchange_over(
    stream: TcpStream,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, ExchangeError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = Abandoned(tokio::spawn(async move {
        let _closed = connection.await;
    }));
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = Limited::new(body, LONGEST).collect().await.map_err(ExchangeError::Body)?.to_bytes();
    drop(connection);
    Ok(Response::from_parts(head, body))
}

/// A connection's task, which ends with whoever waits for it.
struct Abandoned(JoinHandle<()>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
