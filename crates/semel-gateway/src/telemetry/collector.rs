//! Posts to a collector, over a connection that is kept.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderName, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long one export may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the collector answers is read up to this length, so that the connection can be used again.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Where one sort of telemetry is sent.
pub(super) struct Collector {
    host: String,
    port: u16,
    authority: String,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    kept: Option<SendRequest<Full<Bytes>>>,
}

/// Why something was not exported.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotExported {
    /// It may be taken later.
    #[error("the collector cannot be reached: {0}")]
    Unreachable(String),
    /// It will never be taken.
    #[error("the collector answered {0}")]
    Refused(StatusCode),
}

impl Collector {
    /// What is sent goes to `signal` below the collector's address.
    pub(super) fn new(base: &Uri, signal: &str, headers: &[(HeaderName, HeaderValue)]) -> Self {
        let authority = base.authority().map_or("", |authority| authority.as_str());
        Self {
            host: base.host().unwrap_or_default().trim_matches(['[', ']']).into(),
            port: base.port_u16().unwrap_or(80),
            authority: authority.into(),
            path: format!("{}{signal}", base.path().trim_end_matches('/')),
            headers: headers.to_vec(),
            kept: None,
        }
    }

    pub(super) async fn export(&mut self, body: Bytes) -> Result<(), NotExported> {
        let late = |_| NotExported::Unreachable("no answer in time".into());
        tokio::time::timeout(PATIENCE, self.send(body)).await.map_err(late)?
    }

    async fn send(&mut self, body: Bytes) -> Result<(), NotExported> {
        let unreachable = |error: &dyn std::error::Error| NotExported::Unreachable(error.to_string());
        // It may have been closed while it was idle; then there is nothing to lose by another one.
        let mut kept = self.kept.take();
        let alive = match &mut kept {
            Some(kept) => kept.ready().await.is_ok(),
            None => false,
        };
        let mut connection = match kept.filter(|_| alive) {
            Some(kept) => kept,
            None => self.connect().await.map_err(|error| unreachable(&error))?,
        };
        let mut request = Request::post(self.path.as_str())
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(body)).map_err(|error| unreachable(&error))?;
        let answer = connection.send_request(request).await.map_err(|error| unreachable(&error))?;
        let (head, rest) = answer.into_parts();
        if Limited::new(rest, LONGEST_ANSWER).collect().await.is_ok() {
            self.kept = Some(connection);
        }
        match head.status {
            status if status.is_success() => Ok(()),
            // As the protocol has it, these are worth another try.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                Err(NotExported::Unreachable(format!("it answered {}", head.status)))
            }
            status => Err(NotExported::Refused(status)),
        }
    }

    async fn connect(&self) -> std::io::Result<SendRequest<Full<Bytes>>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        // It ends with the sender.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }
}
