//! One request to the service, and what became of it. Nothing is sent twice: a second try that is refused would hide that the first was
//! done.

use crate::aws::{Chain, Signer, parse_date};
use crate::known_pointers::KnownPointers;
use crate::time::StoreClock;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use semel::StoreError;
use semel_http::{Client, Endpoint};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tokio::sync::Semaphore;

/// The version of the service's interface, in the name of every operation.
const INTERFACE: &str = "DynamoDB_20120810";

/// What a condition that does not hold is answered with.
pub(crate) const CONDITION: &str = "ConditionalCheckFailedException";

/// What the service says of a signature whose time is not its own.
const OUT_OF_TIME: [&str; 3] =
    ["InvalidSignatureException", "RequestTimeTooSkewed", "IncompleteSignatureException"];

/// Requests to one table's service.
#[derive(Clone, Debug)]
pub(crate) struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    endpoint: Endpoint,
    signer: Signer,
    credentials: Chain,
    places: Semaphore,
    /// By how many milliseconds the service's time is ahead of this machine's, where that was too much for a signature.
    skew: AtomicI64,
    table: String,
    time: StoreClock,
    pointers: KnownPointers,
}

/// Why a request has no answer that counts.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Nothing was sent, or what was sent was certainly not done.
    NotSent(String),
    /// The service refused it, and did nothing.
    Refused(Refusal),
    /// It may have been done or not.
    Unknown(String),
}

/// An error of the service's.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// Its name, without its namespace.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) document: Value,
}

impl Failure {
    /// Of a call that writes.
    pub(crate) fn of_write(self) -> StoreError {
        match self {
            Self::Unknown(why) => StoreError::Lost(why),
            other => other.of_read(),
        }
    }

    /// Of a call that reads: whatever happened, nothing was written.
    pub(crate) fn of_read(self) -> StoreError {
        match self {
            Self::NotSent(why) | Self::Unknown(why) => StoreError::Unavailable(why),
            Self::Refused(Refusal { code, message, .. }) => {
                StoreError::Unavailable(format!("{code}: {message}"))
            }
        }
    }

    /// The name of the service's error.
    pub(crate) fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            _ => None,
        }
    }
}

impl Api {
    pub(crate) fn new(
        client: Client,
        endpoint: Endpoint,
        (region, table): (&str, &str),
        credentials: Chain,
        at_once: usize,
        time: StoreClock,
    ) -> Self {
        let signer = Signer::new(region, "dynamodb", endpoint.authority());
        let (places, skew) = (Semaphore::new(at_once), AtomicI64::new(0));
        let table = table.into();
        let pointers = KnownPointers::default();
        Self(Arc::new(Inner { client, endpoint, signer, credentials, places, skew, table, time, pointers }))
    }

    pub(crate) fn table(&self) -> &str {
        &self.0.table
    }

    pub(crate) fn time(&self) -> &StoreClock {
        &self.0.time
    }

    pub(crate) fn pointers(&self) -> &KnownPointers {
        &self.0.pointers
    }

    pub(crate) fn address(&self) -> &str {
        self.0.endpoint.authority()
    }

    /// Reads. An answer that was lost is asked for once more: a connection that stood idle may have been closed just then, and nothing
    /// is written by it.
    pub(crate) async fn read(&self, operation: &str, request: &Value) -> Result<Value, StoreError> {
        let answer = match self.call(operation, request).await {
            Err(Failure::Unknown(_)) => self.call(operation, request).await,
            answer => answer,
        };
        answer.map_err(Failure::of_read)
    }

    /// Sends one request, once.
    pub(crate) async fn call(&self, operation: &str, request: &Value) -> Result<Value, Failure> {
        let Inner { client, endpoint, signer, credentials, places, skew, time, .. } = &*self.0;
        let credentials =
            credentials.credentials().await.map_err(|error| Failure::NotSent(error.to_string()))?;
        let _place = places.acquire().await.map_err(|error| Failure::NotSent(error.to_string()))?;
        let body = Bytes::from(request.to_string());
        let target = format!("{INTERFACE}.{operation}");
        let head = endpoint.post("/").header("content-type", "application/x-amz-json-1.0");
        let signed_at = time.wall_millis().saturating_add(skew.load(Relaxed));
        let request = signer
            .sign(head, &target, &body, &credentials, signed_at)
            .map_err(http::Error::from)
            .and_then(|head| head.body(body))
            .map_err(|error| Failure::NotSent(error.to_string()))?;
        let sent = time.asked();
        let answer = client.send(request).await.map_err(|error| match error.nothing_sent() {
            true => Failure::NotSent(error.to_string()),
            false => Failure::Unknown(error.to_string()),
        })?;
        let (head, body) = answer.into_parts();
        let date = date_of(head.status, &head.headers);
        if let Some((date, resolution)) = date {
            time.heard(date, resolution, sent);
        }
        let document = serde_json::from_slice::<Value>(&body);
        match (head.status, document) {
            (StatusCode::OK, Ok(document)) => Ok(document),
            // Done, most likely: it was answered so.
            (StatusCode::OK, Err(_)) => Err(Failure::Unknown(format!("{operation}: an unreadable answer"))),
            (status, document) if status.is_client_error() => {
                let refusal = refusal(status, document.unwrap_or_default());
                if OUT_OF_TIME.contains(&refusal.code.as_str())
                    && let Some((date, _)) = date
                {
                    skew.store(date.saturating_sub(time.wall_millis()), Relaxed);
                }
                Err(Failure::Refused(refusal))
            }
            (status, _) => Err(Failure::Unknown(format!("{operation}: the service answered {status}"))),
        }
    }
}

/// The time that the service itself said it was: not what a proxy in between, or a cache, says.
fn date_of(status: StatusCode, headers: &HeaderMap) -> Option<(i64, i64)> {
    let is_of_service = !status.is_server_error()
        && headers.contains_key("x-amzn-requestid")
        && !headers.contains_key(http::header::AGE);
    let date = headers.get(http::header::DATE).filter(|_| is_of_service)?;
    parse_date(date.to_str().ok()?)
}

fn refusal(status: StatusCode, document: Value) -> Refusal {
    let text = |names: [&str; 2]| {
        names.iter().find_map(|name| document.get(name).and_then(Value::as_str)).map(str::to_owned)
    };
    // "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
    let code = text(["__type", "code"]).unwrap_or_else(|| status.to_string());
    let code = code.rsplit('#').next().unwrap_or_default().to_owned();
    let message = text(["message", "Message"]).unwrap_or_default();
    Refusal { code, message, document }
}
