//! Whom is asked: plain HTTP/1.1 to one address, over connections that are kept.

use super::question::Question;
use bytes::Bytes;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use semel_tower::BoxError;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;

/// The longest body that is read past, to use the connection again. What is in it is of no interest.
const LONGEST_BODY: usize = 64 * 1024;
/// How long it may take. Whoever sends heads and no bodies must not pile up connections here.
const BODY_WITHIN: Duration = Duration::from_secs(2);
/// How many connections are kept.
const MOST_IDLE: usize = 32;

type Sender = SendRequest<Empty<Bytes>>;

/// Whoever decides.
pub(super) struct Authority {
    host: String,
    port: u16,
    name: HeaderValue,
    target: PathAndQuery,
    idle: Arc<Mutex<Vec<Sender>>>,
}

impl Authority {
    /// Whoever is at this address, which the configuration has checked.
    pub(super) fn new(url: &Uri) -> Self {
        let authority = url.authority().map_or("", |authority| authority.as_str());
        Self {
            host: url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port_u16().unwrap_or(80),
            name: HeaderValue::from_str(authority).unwrap_or(HeaderValue::from_static("")),
            target: url.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")),
            idle: Arc::default(),
        }
    }

    /// The head of the answer to a question.
    pub(super) async fn ask(&self, question: &Question) -> Result<(StatusCode, HeaderMap), BoxError> {
        // A kept connection may have been closed by the other side meanwhile. Asking has no effects: it is done again on a new one.
        if let Some(mut sender) = self.kept()
            && let Ok(answer) = sender.send_request(self.request(question)).await
        {
            return Ok(self.head(answer, sender));
        }
        let mut sender = self.connect().await?;
        let answer = sender.send_request(self.request(question)).await?;
        Ok(self.head(answer, sender))
    }

    fn request(&self, question: &Question) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = Uri::from(self.target.clone());
        *request.headers_mut() = question.fields().clone();
        request.headers_mut().insert(HOST, self.name.clone());
        request
    }

    async fn connect(&self) -> Result<Sender, BoxError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends when its sender is dropped, or the other side has had enough.
        tokio::spawn(async { drop(connection.await) });
        Ok(sender)
    }

    /// Nobody waits for the body; the connection is good again once it has come.
    fn head(&self, answer: Response<Incoming>, mut sender: Sender) -> (StatusCode, HeaderMap) {
        let (head, body) = answer.into_parts();
        let idle = Arc::clone(&self.idle);
        tokio::spawn(async move {
            let whole = async {
                Limited::new(body, LONGEST_BODY).collect().await.is_ok() && sender.ready().await.is_ok()
            };
            if tokio::time::timeout(BODY_WITHIN, whole).await == Ok(true) {
                let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
                if idle.len() < MOST_IDLE {
                    idle.push(sender);
                }
            }
        });
        (head.status, head.headers)
    }

    fn kept(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sender) = idle.pop() {
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }
}
