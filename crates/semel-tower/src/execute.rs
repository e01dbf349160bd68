//! The owner's task: runs the service, classifies what came back, stores it, and only then answers.

use crate::body::{Body, BoxError, Collected, Resumed, Stop, collect};
use crate::grpc::{self, Framing};
use crate::handler::{FinishedInside, Operation};
use crate::headers::{self, OUTCOME, operation_id_value};
use crate::identification::{FirstRequest, add_expiry};
use crate::outcome::OutcomeClass;
use crate::protection::{Protection, ValidProtection};
use crate::state::LayerState;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response};
use semel::catch_panic::catch_panic;
use semel::headers::GRPC_ACCEPT_ENCODING;
use semel::problem::GrpcStatus;
use semel::{Finish, Interruption, Outcome, RecordKey, Resource, RightEnded, StoredResponse, Ticket};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
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
    let request = FirstRequest::of(&parts.headers);
    let operation = Operation::new(ticket, key, protection.max_stored_response, request);
    headers::tell_service(&mut parts.headers, operation.id(), operation.attempt());
    let is_call = grpc::is_call(&parts.method, parts.version, &parts.headers);
    if is_call {
        parts.headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    parts.extensions.insert(operation.clone());

    let request = Request::from_parts(parts, B::from(body));
    let mut answer = Some(answer);
    let mut timed_out = false;
    let begun = Instant::now();
    let served = {
        // Pinned here and lent: handed over by value it would be in the future twice, and a third time beside what comes after it.
        let serving = pin!(async {
            let response = inner.call(request).await.map_err(|error| Unserved::Error(error.into()))?;
            Ok(receive(response, &state, &protection, is_call).await)
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
    let served = match served {
        Ok(Served { parts, body: ServedBody::More(body), .. }) => {
            let left = (!timed_out).then(|| protection.timeout.saturating_sub(begun.elapsed()));
            let passing = pass_on(&state, &protection, &operation, parts, body, left, answer);
            // In a box, as what is seldom done is: every request's future would have the room for it.
            return Box::pin(passing).await;
        }
        served => served,
    };
    let response = conclude(&state, &protection, &operation, served, timed_out).await;
    respond(&mut answer, response);
}

/// Passes on an answer to a gRPC call that is not stored, and concludes once its end is known. `left`: how long that may take; `None` if
/// it took too long already.
async fn pass_on(
    state: &LayerState,
    protection: &Protection,
    operation: &Operation,
    parts: http::response::Parts,
    mut body: Body,
    left: Option<Duration>,
    mut answer: Option<oneshot::Sender<Response<Body>>>,
) {
    let (client, passed) = grpc::passing();
    respond(&mut answer, passed_on(state, parts.clone(), passed, operation));
    let mut client = left.is_some().then_some(client);
    let reading = grpc::pass_on(&mut body, client.as_ref());
    let ended = match tokio::time::timeout(left.unwrap_or(Duration::MAX), reading).await {
        Ok(ended) => ended,
        Err(_) => {
            operation.doubt(TIMEOUT).await;
            if let Some(client) = client.take() {
                let mut unknown = state.unknown_to_first(operation.id(), None);
                grpc::refuse_call(&mut unknown);
                client.end(unknown).await;
            }
            grpc::pass_on(&mut body, None).await
        }
    };
    let timed_out = client.is_none();
    let body = ended.map_or_else(ServedBody::Broken, ServedBody::PassedOn);
    let served = Ok(Served { parts, body, is_call: true });
    let mut response = conclude(state, protection, operation, served, timed_out).await;
    if let Some(client) = client {
        grpc::refuse_call(&mut response);
        client.end(response).await;
    }
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
    is_call: bool,
}

enum ServedBody {
    /// With the trailers of a gRPC call.
    Whole(Bytes, Option<Box<HeaderMap>>),
    /// Too long to be stored, or without an end in sight.
    Passing(Body),
    /// Of a gRPC call: too long to be stored, or of several messages. How the call ended, comes last.
    More(Body),
    /// That was passed on, but for the end.
    PassedOn(Option<Box<HeaderMap>>),
    Broken(BoxError),
    NobodyGetsIt,
}

/// Reads the answer, up to the size that can be stored.
async fn receive<R>(
    response: Response<R>,
    state: &LayerState,
    protection: &Protection,
    is_call: bool,
) -> Served
where
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<BoxError>,
{
    let (parts, body) = response.into_parts();
    let endless =
        parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if endless {
        let body = ServedBody::Passing(Body::stream(Resumed::new(Vec::new(), body)));
        return Served { parts, body, is_call };
    }
    // The work is done: its answer is kept even beyond the budget.
    let mut framing = is_call.then(Framing::default);
    let look = |piece: &Bytes| match &mut framing {
        Some(framing) => framing.read(piece).map_err(|_| Stop::PassOn),
        None => Ok(()),
    };
    let body = match collect(body, protection.max_stored_response, look).await {
        // Other answers have no trailers, stored or not.
        Collected::Whole(bytes, trailers) => {
            ServedBody::Whole(state.body_budget.keep_anyway(bytes), trailers.filter(|_| is_call))
        }
        Collected::TooLong(read, rest) if is_call => {
            ServedBody::More(Body::stream(Resumed::new(read, rest).with_trailers()))
        }
        Collected::TooLong(read, rest) => ServedBody::Passing(Body::stream(Resumed::new(read, rest))),
        Collected::Broken(error) => ServedBody::Broken(error),
    };
    Served { parts, body, is_call }
}

/// Classifies and stores what came back, and makes the answer of it.
async fn conclude(
    state: &LayerState,
    protection: &Protection,
    operation: &Operation,
    served: Result<Served, Unserved>,
    timed_out: bool,
) -> Response<Body> {
    let (ticket, declared, resource, schema_version, request, finished) = {
        let mut slot = operation.slot();
        (
            slot.ticket.take(),
            slot.outcome,
            slot.resource.take(),
            slot.schema_version.take(),
            std::mem::take(&mut slot.request),
            slot.finished.take(),
        )
    };
    let id = operation.id();
    match finished {
        // What the handler's transaction stored is the answer, whatever the handler made of it afterwards.
        Some(FinishedInside::Committed(stored, expires)) => {
            let mut response = state.first_stored(stored, id);
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
            Ok(Served { parts, body: ServedBody::Whole(bytes, trailers), .. }) => {
                passed_on(state, parts, with_trailers(bytes, trailers), operation)
            }
            Ok(Served { parts, body: ServedBody::PassedOn(trailers), .. }) => {
                passed_on(state, parts, with_trailers(Bytes::new(), trailers), operation)
            }
            Ok(Served { parts, body: ServedBody::Passing(body), .. }) => {
                passed_on(state, parts, body, operation)
            }
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
    let Served { mut parts, mut body, is_call } = served;
    let trailers = match &body {
        ServedBody::Whole(_, trailers) | ServedBody::PassedOn(trailers) => trailers.as_deref(),
        _ => None,
    };
    let (status, call) = (parts.status, is_call.then(|| grpc::status_of(&parts.headers, trailers)));
    let (class, broken) = match &body {
        ServedBody::Broken(error) => {
            ticket.explain(error.to_string());
            (OutcomeClass::Unknown, Some(if timed_out { TIMEOUT } else { "answer_broke_off" }))
        }
        _ => (declared.unwrap_or_else(|| classify(&parts, trailers, call, protection, &ticket)), None),
    };
    let resource = resource
        .or_else(|| headers::resource(&parts.headers))
        .or_else(|| trailers.and_then(headers::resource));
    let mut kept_headers = match call {
        None => protection.kept_headers.of(&parts.headers, request.is_for_page()),
        Some(_) => protection.kept_headers.of_call(&parts.headers, trailers, request.is_for_page()),
    };
    let given = headers::request_id(&parts.headers);
    request.keep(given.as_ref().map(HeaderValue::as_bytes), &mut kept_headers);
    let kept = StoredResponse {
        status: status.as_u16(),
        headers: kept_headers,
        body: match &body {
            ServedBody::Whole(bytes, _) => semel::Body::Stored(bytes.clone()),
            _ => semel::Body::NotStored,
        },
        schema_version: schema_version
            .or_else(|| headers::schema_version(&parts.headers))
            .or_else(|| trailers.and_then(headers::schema_version)),
    };
    headers::drop_ours(&mut parts.headers);
    // In doubt the body is dropped, and with it what is left to send of the request.
    if class == OutcomeClass::Unknown {
        body = ServedBody::NobodyGetsIt;
    }
    let error = || match (broken, call) {
        (Some(broken), _) => broken.into(),
        (None, Some(Some(number))) => format!("grpc_status_{number}"),
        (None, Some(None)) => "grpc_status_missing".into(),
        (None, None) => format!("status_{}", status.as_u16()),
    };
    let outcome = outcome(class, kept, resource, error);
    match (ticket.finish(outcome).await, body) {
        (Ok(Finish::Stored), ServedBody::Whole(bytes, trailers)) => {
            passed_on(state, parts, with_trailers(bytes, trailers), operation)
        }
        (Ok(Finish::Stored), ServedBody::PassedOn(trailers)) => {
            passed_on(state, parts, with_trailers(Bytes::new(), trailers), operation)
        }
        (Ok(Finish::Stored), ServedBody::Passing(body)) => passed_on(state, parts, body, operation),
        (Ok(Finish::Fenced(record)), _) => {
            state.fenced(record, id, request.origin(), &protection.kept_headers)
        }
        _ => state.unknown_to_first(id, Some(&parts)),
    }
}

fn with_trailers(bytes: Bytes, trailers: Option<Box<HeaderMap>>) -> Body {
    let trailers = trailers.map(|mut trailers| {
        headers::drop_ours(&mut trailers);
        *trailers
    });
    Body::trailed(bytes, trailers)
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

/// What the answer says of the operation: the service's own word, else what kept it from going through its phases, else its status. `call`:
/// the status of a gRPC call, if it has one.
fn classify(
    parts: &http::response::Parts,
    trailers: Option<&HeaderMap>,
    call: Option<Option<u16>>,
    protection: &Protection,
    ticket: &Ticket,
) -> OutcomeClass {
    let trailing = trailers.into_iter().flat_map(|trailers| trailers.get_all(OUTCOME));
    let mut words = parts.headers.get_all(OUTCOME).iter().chain(trailing);
    let Some(word) = words.next() else {
        return match ticket.interruption() {
            // A status that the handler made of an error cannot know better than the phase that it came from.
            Some(Interruption::InDoubt) => OutcomeClass::Unknown,
            Some(Interruption::Resumable) => OutcomeClass::Retryable,
            None => match call {
                Some(status) => protection.outcomes.class_of_call(status.and_then(GrpcStatus::from_number)),
                None => protection.outcomes.class_of(parts.status),
            },
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
