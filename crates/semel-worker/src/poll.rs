//! Asks over HTTP, at an address that the configuration fixes.

mod about;
mod address;
mod answer;

use crate::reconcile::{Finding, Question, Reconcile};
use crate::rules::Asking;
use address::Address;
use answer::{Answer, read};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONNECTION, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use semel_tower::{ATTEMPT, OPERATION_ID};
use std::pin::Pin;
use std::time::Duration;
use tokio::net::TcpStream;

/// An answer's length at most: the response that is to be replayed, as base64, and some more.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;

/// How an operation is asked about over HTTP. What `new` gives are the defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PollOptions {
    /// Where: an `http` address with `{operation_id}` in its path or query. Nothing else of it varies.
    pub url: String,
    /// As [`Asking::every`].
    pub every: Duration,
    /// As [`Asking::attempts`].
    pub attempts: u32,
    /// As [`Asking::deadline`].
    pub deadline: Duration,
    /// Whoever answers that there is no trace of an attempt promises to refuse this attempt and the ones before it from then on.
    /// Default: not so, and such an answer leaves the outcome unknown.
    pub absence_is_proof: bool,
}

impl PollOptions {
    /// Asks at this address, by the defaults of [`Asking::new`].
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            every: Duration::from_secs(5),
            attempts: 12,
            deadline: Duration::from_secs(5),
            absence_is_proof: false,
        }
    }

    /// The same as rules for an operation.
    ///
    /// # Errors
    /// The address is none that can be asked at.
    pub fn asking(&self) -> Result<Asking, InvalidPoll> {
        let whom = HttpPoll::new(&self.url, self.absence_is_proof)?;
        let (every, attempts, deadline) = (self.every, self.attempts, self.deadline);
        Ok(Asking { every, attempts, deadline, ..Asking::new(whom) })
    }
}

/// Why an address cannot be asked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPoll {
    /// It is no address.
    #[error("`{0}` is no address: it looks like http://127.0.0.1:9000/operations/{{operation_id}}")]
    Address(String),
    /// It is not plain HTTP.
    #[error(
        "`{0}` is not an http:// address: polls speak plain HTTP, to the service beside the gateway or through a local proxy"
    )]
    Scheme(String),
    /// It would ask the same for every operation.
    #[error("`{0}` has no {{operation_id}} in its path or query: every operation would get the same answer")]
    NoOperation(String),
    /// Something else is to be put in, or not in the path.
    #[error("`{0}`: {{operation_id}} in the path or the query is all that can be put into the address")]
    Placeholder(String),
}

/// Asks over HTTP: `GET` with `Semel-Operation-Id` and `Semel-Attempt`.
///
/// - `200` with a response document, `{"status": 201, "headers": {…}, "body": "…"}` (or `body_base64`): it happened, or was refused
///   if the document's status is 400 or more. `{"outcome": "completed" | "failed", "response": {…}, "resource": {"type": …, "id": …}}` says it
///   outright.
/// - `404` or `200` with `Semel-Outcome: not_executed`, or the document `{"outcome": "not_executed"}`: there is no trace of it. That counts
///   if absence is proof, and if the answer repeats both `Semel-Operation-Id` and `Semel-Attempt` of the question (or has them in its
///   document as `operation_id` and `attempt`). Any proxy can answer 404; it would not repeat what it was asked.
/// - Anything else leaves the outcome unknown: a 404 without that, an answer with an `Age` field, an answer that names another operation,
///   redirects (which are not followed), errors, no answer, an answer of over 4 MiB.
///
/// Every question takes a connection of its own.
#[derive(Debug)]
pub struct HttpPoll {
    address: Address,
    absence_is_proof: bool,
}

impl HttpPoll {
    /// Asks at this address.
    ///
    /// # Errors
    /// The address is none that can be asked at.
    pub fn new(url: &str, absence_is_proof: bool) -> Result<Self, InvalidPoll> {
        Ok(Self { address: Address::parse(url)?, absence_is_proof })
    }

    async fn get(&self, question: &Question) -> Result<Finding, Failure> {
        let request = Request::get(self.address.path_for(question.operation_id))
            .header(HOST, self.address.authority())
            .header(ACCEPT, "application/json")
            .header(CONNECTION, "close")
            // What was true of an earlier attempt must not be told of this one.
            .header(CACHE_CONTROL, "no-store")
            .header(OPERATION_ID, question.operation_id.to_string())
            .header(ATTEMPT, question.attempt)
            .body(Empty::<Bytes>::new())
            .map_err(|_| Failure("poll_not_sent"))?;
        let stream =
            TcpStream::connect(self.address.socket()).await.map_err(|_| Failure("poll_unreachable"))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|_| Failure("poll_unreachable"))?;
        let answered = async {
            let response = sender.send_request(request).await.map_err(|_| Failure("poll_broken_off"))?;
            let (head, body) = response.into_parts();
            let body = if self.is_worth_reading(head.status) {
                let body = Limited::new(body, LONGEST_ANSWER).collect().await;
                body.map_err(|_| Failure("poll_answer_too_long_or_broken_off"))?.to_bytes()
            } else {
                Bytes::new()
            };
            let answer = Answer { status: head.status, headers: &head.headers, body: &body };
            Ok(read(question, &answer, self.absence_is_proof))
        };
        tokio::pin!(answered);
        tokio::select! {
            answered = &mut answered => answered,
            // The connection ends of itself after the answer, and then the answer is there.
            _ = connection => answered.await,
        }
    }

    /// Whether an answer of this status may have a document.
    fn is_worth_reading(&self, status: StatusCode) -> bool {
        status == StatusCode::OK || (status == StatusCode::NOT_FOUND && self.absence_is_proof)
    }
}

/// A code for why there is no answer.
struct Failure(&'static str);

impl Reconcile for HttpPoll {
    fn ask(&self, question: Question) -> Pin<Box<dyn Future<Output = Finding> + Send + '_>> {
        Box::pin(async move {
            self.get(&question).await.unwrap_or_else(|Failure(code)| Finding::Unclear(code.into()))
        })
    }
}
