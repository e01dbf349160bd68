//! The owner's task: runs the service, classifies what came back, stores it, and only then answers.

use crate::body::{Body, BoxError, Collected, Resumed, collect};
use crate::handler::{FinishedInside, Operation};
use crate::headers::{self, OUTCOME, operation_id_value};
use crate::identification::{self, add_expiry};
use crate::outcome::OutcomeClass;
use crate::protection::{Protection, ValidProtection};
use crate::state::LayerState;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use semel::catch_panic::catch_panic;
use semel::headers::ORIGINAL_REQUEST_ID;
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
    pub(crate) state: Arc<LayerState>,
    pub(crate) protection: ValidProtection,
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
    let Execution { state, protection, ticket, key, answer } = execution;
    let operation = Operation::new(ticket, key, protection.max_stored_response);
    let request_id = headers::request_id(&parts.headers);
    headers::tell_service(&mut parts.headers, operation.id(), operation.attempt());
    parts.extensions.insert(operation.clone());

    let request = Request::from_parts(parts, B::from(body));
    let mut answer = Some(answer);
    let mut timed_out = false;
    let served = {
        // Pinned here and lent: handed over by value it would be in the future twice, and a third time beside what comes after it.
        let serving = pin!(async {
            let response = inner.call(request).await.map_err(|error| Unserved::Error(error.into()))?;
            Ok(receive(response, &state, &protection).await)
        });
        let mut served = pin!(catch_panic(serving));
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
                // Nothing more is sent from here on. If nothing was sent yet, the service reports that at once, and there is no doubt.
                let doubting = Box::pin(operation.doubt(TIMEOUT));
                match poll_fn(|context| Poll::Ready(served.as_mut().poll(context))).await {
                    Poll::Ready(caught) => caught,
                    Poll::Pending => {
                        // The client is answered now; the work continues, and its late outcome still counts.
                        doubting.await;
                        respond(&mut answer, state.unknown_to_first(operation.id(), None));
                        served.await
                    }
                }
            }
        };
        caught.unwrap_or(Err(Unserved::Panicked))
    };
    let response = conclude(&state, &protection, &operation, request_id, served, timed_out).await;
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

/// Reads the answer, up to the size that can be stored.
async fn receive<R>(response: Response<R>, state: &LayerState, protection: &Protection) -> Served
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
    // The work is done: its answer is kept even beyond the budget.
    let body = match collect(body, protection.max_stored_response, |_| Ok(())).await {
        Collected::Whole(bytes) => ServedBody::Whole(state.body_budget.keep_anyway(bytes)),
        Collected::TooLong(read, rest) => ServedBody::Passing(Body::stream(Resumed::new(read, rest))),
        Collected::Broken(error) => ServedBody::Broken(error),
    };
    Served { parts, body }
}

/// Classifies and stores what came back, and makes the answer of it.
async fn conclude(
    state: &LayerState,
    protection: &Protection,
    operation: &Operation,
    request_id: Option<HeaderValue>,
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
        Some(FinishedInside::Committed(stored, expires)) => {
            let mut response = state.stored(stored, id);
            add_expiry(response.headers_mut(), expires);
            state.identify_first(response.headers_mut(), id);
            return response;
        }
        Some(FinishedInside::Unknown) => return state.unknown_to_first(id, None),
        None => {}
    }
    let Some(ticket) = ticket else {
        // The handler took the ticket, and with it the duty to finish. Whether it did, the store knows.
        if !state.has_ended(id).await {
            return state.unknown_to_first(id, None);
        }
        return match served {
            Ok(Served { parts, body: ServedBody::Whole(bytes) }) => {
                passed_on(state, parts, Body::from(bytes), operation)
            }
            Ok(Served { parts, body: ServedBody::Passing(body) }) => passed_on(state, parts, body, operation),
            Ok(_) | Err(_) => state.unknown_to_first(id, None),
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
            return state.unknown_to_first(id, None);
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
    let mut kept_headers = protection.kept_headers.of(&parts.headers);
    if let Some(id) = identification::to_keep(&parts.headers, request_id.as_ref()) {
        kept_headers.push((ORIGINAL_REQUEST_ID.as_str().to_owned(), Bytes::copy_from_slice(id.as_bytes())));
    }
    let kept = StoredResponse {
        status: status.as_u16(),
        headers: kept_headers,
        body: match &body {
            ServedBody::Whole(bytes) => semel::Body::Stored(bytes.clone()),
            ServedBody::Passing(_) | ServedBody::Broken(_) | ServedBody::NobodyGetsIt => {
                semel::Body::NotStored
            }
        },
        schema_version: schema_version.or_else(|| headers::schema_version(&parts.headers)),
    };
    headers::drop_ours(&mut parts.headers);
    // In doubt the body is dropped, and with it what is left to send of the request.
    if class == OutcomeClass::Unknown {
        body = ServedBody::NobodyGetsIt;
    }
    let error = || broken.map_or_else(|| format!("status_{}", status.as_u16()), Into::into);
    let outcome = outcome(class, kept, resource, error);
    match (ticket.finish(outcome).await, body) {
        (Ok(Finish::Stored), ServedBody::Whole(bytes)) => {
            passed_on(state, parts, Body::from(bytes), operation)
        }
        (Ok(Finish::Stored), ServedBody::Passing(body)) => passed_on(state, parts, body, operation),
        (Ok(Finish::Fenced(record)), _) => state.fenced(record, id),
        _ => state.unknown_to_first(id, Some(&parts)),
    }
}

fn passed_on(
    state: &LayerState,
    mut parts: http::response::Parts,
    body: Body,
    operation: &Operation,
) -> Response<Body> {
    headers::drop_ours(&mut parts.headers);
    parts.headers.insert(headers::OPERATION_ID, operation_id_value(operation.id()));
    add_expiry(&mut parts.headers, operation.right().window_ends());
    state.identify_first(&mut parts.headers, operation.id());
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
        // The service meant to declare an outcome, but not a valid one.
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
