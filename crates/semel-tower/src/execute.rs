//! The owner's task: runs the service, classifies what came back, stores it, and only then answers.

use crate::body::{Body, BoxError, Collected, Resumed, collect};
use crate::headers::{self, OUTCOME, operation_id_value};
use crate::layer::Config;
use crate::operation::{FinishedInside, Operation};
use crate::outcome::OutcomeClass;
use crate::protection::Protection;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Request, Response};
use semel::caught::caught;
use semel::{Finish, Interruption, Outcome, RecordKey, Resource, RightEnded, StoredResponse, Ticket};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::oneshot;
use tower::Service;

/// The cause of doubt where the service took too long.
const TIMEOUT: &str = "timeout";

/// One execution, and who waits for it.
pub(crate) struct Execution {
    pub(crate) config: Arc<Config>,
    pub(crate) protection: Arc<Protection>,
    pub(crate) ticket: Ticket,
    pub(crate) key: RecordKey,
    pub(crate) answer: oneshot::Sender<Response<Body>>,
}

/// Runs the service as the owner of the operation.
pub(crate) async fn execute<S, B, R>(execution: Execution, mut inner: S, mut parts: Parts, body: Bytes)
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    B: From<Bytes>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<BoxError>,
{
    let Execution { config, protection, ticket, key, answer } = execution;
    let operation = Operation::new(ticket, key, protection.max_stored_response);
    headers::tell_service(&mut parts.headers, operation.id(), operation.attempt());
    parts.extensions.insert(operation.clone());

    let request = Request::from_parts(parts, B::from(body));
    let mut answer = Some(answer);
    let mut timed_out = false;
    let served = {
        // Pinned here and lent: handed over by value it would be in the future twice, and a third time beside what comes after it.
        let serving = pin!(async {
            let response = inner.call(request).await.map_err(|error| Unserved::Error(error.into()))?;
            Ok(receive(response, &config, &protection).await)
        });
        let mut served = pin!(caught(serving));
        // When the right to execute ends, the service is polled: what it is still sending is not to be sent.
        poll_fn(|context| {
            operation.right().wakes(context);
            Poll::Ready(())
        })
        .await;
        let in_time = tokio::time::timeout(protection.timeout, &mut served).await;
        let caught = match in_time {
            Ok(caught) => caught,
            Err(_) => {
                timed_out = true;
                // Nothing more is sent from here on. A service that was not sent anything yet says so at once, and then there is no doubt.
                let doubting = Box::pin(operation.doubt(TIMEOUT));
                match poll_fn(|context| Poll::Ready(served.as_mut().poll(context))).await {
                    Poll::Ready(caught) => caught,
                    Poll::Pending => {
                        // The client is told now; the work goes on, and its late outcome still counts.
                        doubting.await;
                        respond(&mut answer, config.unknown_to_first(operation.id(), None));
                        served.await
                    }
                }
            }
        };
        caught.unwrap_or(Err(Unserved::Panicked))
    };
    let response = conclude(&config, &protection, &operation, served, timed_out).await;
    respond(&mut answer, response);
}

fn respond(answer: &mut Option<oneshot::Sender<Response<Body>>>, response: Response<Body>) {
    if let Some(answer) = answer.take() {
        // A client that has hung up gets the same answer when it comes back.
        let _ = answer.send(response);
    }
}

/// Why there is no answer of the service's.
enum Unserved {
    Panicked,
    Error(BoxError),
}

/// An answer of the service's.
struct Served {
    parts: http::response::Parts,
    body: ServedBody,
}

enum ServedBody {
    Whole(Bytes),
    /// Too long to be stored, or without an end in sight.
    Passing(Body),
    Broken(BoxError),
    NobodyGetsIt,
}

/// Reads the answer as far as it can be stored.
async fn receive<R>(response: Response<R>, config: &Config, protection: &Protection) -> Served
where
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<BoxError>,
{
    let (parts, body) = response.into_parts();
    let endless =
        parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if endless {
        return Served { parts, body: ServedBody::Passing(Body::stream(Resumed::new(Vec::new(), body))) };
    }
    // The work is done: there has to be room for what came of it.
    let body = match collect(body, protection.max_stored_response, |_| Ok(())).await {
        Collected::Whole(bytes) => ServedBody::Whole(config.memory.keep_anyway(bytes)),
        Collected::TooLong(read, rest) => ServedBody::Passing(Body::stream(Resumed::new(read, rest))),
        Collected::Broken(error) => ServedBody::Broken(error),
    };
    Served { parts, body }
}

/// Classifies and stores what came back, and makes the answer of it.
async fn conclude(
    config: &Config,
    protection: &Protection,
    operation: &Operation,
    served: Result<Served, Unserved>,
    timed_out: bool,
) -> Response<Body> {
    let (ticket, declared, resource, schema_version, finished) = {
        let mut slot = operation.slot();
        (
            slot.ticket.take(),
            slot.outcome,
            slot.resource.take(),
            slot.schema_version.take(),
            slot.finished.take(),
        )
    };
    let id = operation.id();
    match finished {
        // What the handler's transaction stored is the answer, whatever the handler made of it afterwards.
        Some(FinishedInside::Committed(stored)) => return config.stored(stored, id),
        Some(FinishedInside::Unknown) => return config.unknown_to_first(id, None),
        None => {}
    }
    let Some(ticket) = ticket else {
        // The handler took the ticket, and with it the duty to finish. Whether it did, the store knows.
        if !config.has_ended(id).await {
            return config.unknown_to_first(id, None);
        }
        return match served {
            Ok(Served { parts, body: ServedBody::Whole(bytes) }) => {
                passed_on(parts, Body::from(bytes), operation)
            }
            Ok(Served { parts, body: ServedBody::Passing(body) }) => passed_on(parts, body, operation),
            Ok(_) | Err(_) => config.unknown_to_first(id, None),
        };
    };
    let served = match served {
        Ok(served) => served,
        Err(unserved) => {
            let error = match unserved {
                Unserved::Panicked => "panicked",
                Unserved::Error(error) => {
                    let ended = error.downcast_ref().map(|ended: &RightEnded| ended.as_str());
                    ticket.explain(error.to_string());
                    if timed_out { TIMEOUT } else { ended.unwrap_or("service_error") }
                }
            };
            let _ = ticket.finish(Outcome::Unknown { error: error.into() }).await;
            return config.unknown_to_first(id, None);
        }
    };
    let Served { mut parts, mut body } = served;
    let status = parts.status;
    let (class, broken) = match &body {
        ServedBody::Broken(error) => {
            ticket.explain(error.to_string());
            (OutcomeClass::Unknown, Some(if timed_out { TIMEOUT } else { "answer_broke_off" }))
        }
        _ => (declared.unwrap_or_else(|| classify(&parts, protection, &ticket)), None),
    };
    let resource = resource.or_else(|| headers::resource(&parts.headers));
    let kept = StoredResponse {
        status: status.as_u16(),
        headers: protection.kept_headers.of(&parts.headers),
        body: match &body {
            ServedBody::Whole(bytes) => semel::Body::Stored(bytes.clone()),
            ServedBody::Passing(_) | ServedBody::Broken(_) | ServedBody::NobodyGetsIt => {
                semel::Body::NotStored
            }
        },
        schema_version: schema_version.or_else(|| headers::schema_version(&parts.headers)),
    };
    headers::drop_ours(&mut parts.headers);
    // In doubt nobody gets it: with it goes whatever is left to send of the request.
    if class == OutcomeClass::Unknown {
        body = ServedBody::NobodyGetsIt;
    }
    let error = || broken.map_or_else(|| format!("status_{}", status.as_u16()), Into::into);
    let outcome = outcome(class, kept, resource, error);
    match (ticket.finish(outcome).await, body) {
        (Ok(Finish::Stored), ServedBody::Whole(bytes)) => passed_on(parts, Body::from(bytes), operation),
        (Ok(Finish::Stored), ServedBody::Passing(body)) => passed_on(parts, body, operation),
        (Ok(Finish::Fenced(record)), _) => config.fenced(record, id),
        _ => config.unknown_to_first(id, Some(&parts)),
    }
}

fn passed_on(mut parts: http::response::Parts, body: Body, operation: &Operation) -> Response<Body> {
    headers::drop_ours(&mut parts.headers);
    parts.headers.insert(headers::OPERATION_ID, operation_id_value(operation.id()));
    Response::from_parts(parts, body)
}

/// What the answer says of the operation: the service's own word, else what kept it from going through its phases, else its status.
fn classify(parts: &http::response::Parts, protection: &Protection, ticket: &Ticket) -> OutcomeClass {
    let mut words = parts.headers.get_all(OUTCOME).iter();
    let Some(word) = words.next() else {
        return match ticket.interruption() {
            // A status that the handler made of an error cannot know better than the phase that it came from.
            Some(Interruption::InDoubt) => OutcomeClass::Unknown,
            Some(Interruption::Resumable) => OutcomeClass::Retryable,
            None => protection.outcomes.class_of(parts.status),
        };
    };
    let alone = words.next().is_none().then_some(word);
    alone.and_then(|word| word.to_str().ok()?.parse().ok()).unwrap_or_else(|| {
        // It meant to say something, and nobody knows what.
        ticket.explain("the service's Semel-Outcome is not a valid outcome".into());
        OutcomeClass::Unknown
    })
}

fn outcome(
    class: OutcomeClass,
    kept: StoredResponse,
    resource: Option<Resource>,
    error: impl FnOnce() -> String,
) -> Outcome {
    match class {
        OutcomeClass::Completed => Outcome::Completed { response: Some(kept), resource },
        OutcomeClass::Failed => Outcome::Failed { response: Some(kept), resource },
        OutcomeClass::Retryable => Outcome::Retryable { error: error() },
        OutcomeClass::Released => Outcome::Released,
        OutcomeClass::Unknown => Outcome::Unknown { error: error() },
    }
}
