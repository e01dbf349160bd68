//! Asks over HTTP, at an address that the configuration fixes.

mod about;
mod address;
mod answer;

use crate::reconcile::{Finding, Question, Reconcile};
use crate::rules::Asking;
use address::Address;
use answer::{Answer, read};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONNECTION};
use http::{Response, StatusCode};
use semel_http::tls::{ClientTlsFiles, TlsError};
use semel_http::{Client, Error, InvalidEndpoint, Options};
use semel_tower::{ATTEMPT, OPERATION_ID};
use std::pin::Pin;
use std::time::Duration;

/// The longest answer that is read: the response that is to be replayed, as base64, and some more.
const LONGEST_ANSWER: usize = 4 * 1024 * 1024;

/// How an operation is polled over HTTP. What `new` gives are the defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PollOptions {
    /// Where: an `http` or `https` URL with `{operation_id}` in its path or query. Nothing else of it varies.
    pub url: String,
    /// Whom to trust there, and which certificate to show, for `https`. Default: the system's authorities, and none.
    pub tls: ClientTlsFiles,
    /// As [`Asking::every`].
    pub every: Duration,
    /// As [`Asking::attempts`].
    pub attempts: u32,
    /// As [`Asking::deadline`].
    pub deadline: Duration,
    /// A service that answers "no trace of this attempt" promises to refuse this attempt and the ones before it from then on.
    /// Default: not so, and such an answer leaves the outcome unknown.
    pub absence_is_proof: bool,
}

impl PollOptions {
    /// Polls this URL, by the defaults of [`Asking::new`].
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            tls: ClientTlsFiles::default(),
            every: Duration::from_secs(5),
            attempts: 12,
            deadline: Duration::from_secs(5),
            absence_is_proof: false,
        }
    }

    /// The same as rules for an operation. For `https`, to be called within a runtime.
    ///
    /// # Errors
    /// The URL cannot be polled, or the files for TLS cannot be used.
    pub fn asking(&self) -> Result<Asking, InvalidPoll> {
        let whom = HttpPoll::new(self)?;
        let (every, attempts, deadline) = (self.every, self.attempts, self.deadline);
        Ok(Asking { every, attempts, deadline, ..Asking::new(whom) })
    }
}

/// Why a URL cannot be polled. The URL is not repeated: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPoll {
    /// It is not a URL that requests can be sent to.
    #[error(transparent)]
    Url(#[from] InvalidEndpoint),
    /// It would ask the same for every operation.
    #[error("no {{operation_id}} in path or query: every operation would get the same answer")]
    NoOperation,
    /// Something else is to be put in, or not in the path.
    #[error("{{operation_id}} in path or query is the only placeholder")]
    Placeholder,
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Asks over HTTP: `GET` with `Semel-Operation-Id` and `Semel-Attempt`.
///
/// - `200` with a response document, `{"status": 201, "headers": {…}, "body": "…"}` (or `body_base64`): it happened, or was refused
///   if the document's status is 400 or more. `{"outcome": "completed" | "failed", "response": {…}, "resource": {"type": …, "id": …}}` says it
///   outright. A refusal counts if the answer repeats both `Semel-Operation-Id` and `Semel-Attempt` of the question, or has them in a document that
///   names the outcome, as `operation_id` and `attempt`.
/// - `404` or `200` with `Semel-Outcome: not_executed`, or the document `{"outcome": "not_executed"}`: there is no trace of it. That counts
///   if absence is proof, and if the answer repeats both as well. Any proxy can answer 404; it would not repeat what it was asked.
/// - Anything else leaves the outcome unknown: a 404 without that, an answer with an `Age` field, an answer that names another operation,
///   redirects (which are not followed), errors, no answer, an answer of over 4 MiB.
///
/// Every question takes a connection of its own.
#[derive(Debug)]
pub struct HttpPoll {
    address: Address,
    client: Client,
    absence_is_proof: bool,
}

impl HttpPoll {
    /// Polls as the options say; `every` and `attempts` are the reconciler's. For `https`, to be called within a runtime.
    ///
    /// # Errors
    /// The URL cannot be polled, or the files for TLS cannot be used.
    pub fn new(options: &PollOptions) -> Result<Self, InvalidPoll> {
        let address = Address::parse(&options.url)?;
        let http = Options {
            deadline: options.deadline,
            longest_answer: LONGEST_ANSWER,
            // Questions are rare, and an idle connection that broke would cost one of the attempts.
            idle_connections: 0,
            ..Options::default()
        };
        let client = Client::new(address.endpoint(), options.tls.clone(), http)?;
        Ok(Self { address, client, absence_is_proof: options.absence_is_proof })
    }

    async fn get(&self, question: &Question) -> Result<Response<Bytes>, Failure> {
        let path = self.address.path_for(question.operation_id);
        let request = self
            .address
            .endpoint()
            .get(&path)
            .header(ACCEPT, "application/json")
            .header(CONNECTION, "close")
            // What was true of an earlier attempt must not be told of this one.
            .header(CACHE_CONTROL, "no-store")
            .header(OPERATION_ID, question.operation_id.to_string())
            .header(ATTEMPT, question.attempt)
            .body(Bytes::new())
            .map_err(|_| Failure("poll_not_sent"))?;
        let answered = self.client.send_and_read_if(request, |head| self.is_worth_reading(head.status)).await;
        answered.map_err(|error| {
            tracing::warn!(operation_id = %question.operation_id, %error, "poll failed");
            Failure(match error {
                Error::Connect { .. } => "poll_unreachable",
                Error::Timeout { .. } => "deadline",
                Error::TooLong { .. } | Error::Truncated { .. } => "poll_answer_too_long_or_broken_off",
                _ => "poll_broken_off",
            })
        })
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
            let answer = match self.get(&question).await {
                Ok(answer) => answer,
                Err(Failure(code)) => return Finding::Unclear(code.into()),
            };
            let (status, headers, body) = (answer.status(), answer.headers(), answer.body());
            read(&question, &Answer { status, headers, body }, self.absence_is_proof)
        })
    }
}
