//! The service: a request's way from the key to the task that executes it.

use crate::admission::{Admission, Admitted};
use crate::body::NoRoom;
use crate::body::{Body, BoxError, Collected, Stop, collect};
use crate::body_key::Keyed;
use crate::context::SeenBody;
use crate::execute::{Execution, execute};
use crate::fingerprinting::FingerprintedRequest;
use crate::grpc::{self, Framing, SecondMessage};
use crate::headers;
use crate::identification::Echo;
use crate::protection::KeyRequirement;
use crate::responses::Decided;
use crate::state::LayerState;
use crate::tenant::FoundTenant;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use semel::observe::Event;
use semel::trace::Trace;
use semel::{BeginError, Incoming, RecordKey};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::sync::oneshot;
use tower::Service;

/// A service whose writes happen once. Made by [`IdempotencyLayer`](crate::IdempotencyLayer).
#[derive(Clone)]
pub struct Idempotency<S> {
    inner: S,
    state: Arc<LayerState>,
}

impl<S> Idempotency<S> {
    pub(crate) fn new(inner: S, state: Arc<LayerState>) -> Self {
        Self { inner, state }
    }
}

type Answering<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: http_body::Body<Data = Bytes> + From<Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answering<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Answering<S::Error> {
        // The clone that was polled ready is the one to call.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let (parts, body) = request.into_parts();
        let mut echo = Echo::of(self.state.profile, &parts);
        let is_call = grpc::is_call(&parts.method, parts.version, &parts.headers);
        let admitted = match self.state.admit(&parts) {
            Admission::Pass => {
                let passing = inner.call(Request::from_parts(parts, body));
                return Box::pin(async move { Ok(passing.await?.map(Body::stream)) });
            }
            Admission::PassWithoutKey => {
                return Box::pin(pass_without_key(inner, parts, body));
            }
            Admission::Answer(mut response) => {
                echo.add_to(&mut response);
                if is_call {
                    grpc::refuse_call(&mut response);
                }
                return Box::pin(async move { Ok(*response) });
            }
            Admission::Protect(admitted) => {
                echo.key_of(self.state.profile, &admitted.protection.key_sources, &parts);
                admitted
            }
        };
        let state = Arc::clone(&self.state);
        let seen = SeenBody::of(&state);
        let timed = state.engine.observer().cloned().map(|observer| {
            let operation = admitted.operation.clone();
            (observer, operation, Instant::now())
        });
        Box::pin(async move {
            let mut response =
                protect(Arc::clone(&state), inner, *admitted, parts, body, seen.clone()).await?;
            seen.echo(&state, &mut response);
            echo.add_to(&mut response);
            if is_call {
                grpc::refuse_call(&mut response);
            }
            if let Some((observer, operation, begun)) = timed {
                observer.request(&operation, begun.elapsed());
            }
            Ok(response)
        })
    }
}

/// Reads the request, then hands it to a task of its own and waits for the answer. Only this waiting ends when the client hangs
/// up.
async fn protect<S, B, R>(
    state: Arc<LayerState>,
    inner: S,
    admitted: Admitted,
    mut parts: Parts,
    body: B,
    seen: SeenBody,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + From<Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<BoxError>,
{
    let Admitted { key, operation, protection } = admitted;
    // Without a key in its head it may be one that passes, whoever sent it.
    let mut tenant = None;
    if key.is_some() || protection.key == KeyRequirement::Required {
        tenant = Some(match tenant_of(&state, &operation, &parts).await {
            Ok(tenant) => tenant,
            Err(refusal) => return Ok(*refusal),
        });
    }
    let limit = protection.max_request_body;
    let announced =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Ok(state.too_large(limit));
    }
    let mut held = state.body_budget.hold();
    let mut framing = grpc::is_call(&parts.method, parts.version, &parts.headers).then(Framing::default);
    let look = |piece: &Bytes| {
        held.grow(piece.len())?;
        match &mut framing {
            Some(framing) => framing.read(piece).map_err(|error| Stop::Broken(error.into())),
            None => Ok(()),
        }
    };
    let body = match collect(body, limit, look).await {
        // What ends before its first message does is no call.
        Collected::Whole(..) if framing.as_ref().is_some_and(|framing| !framing.is_one_message()) => {
            let detail = "The call does not have one whole message; nothing was executed.";
            return Ok(state.plain(StatusCode::BAD_REQUEST, false, detail));
        }
        Collected::Whole(bytes, _) => held.until_gone(bytes),
        Collected::TooLong(..) => return Ok(state.too_large(limit)),
        Collected::Broken(error) if error.is::<NoRoom>() => return Ok(state.no_room_for_request()),
        Collected::Broken(error) if error.is::<SecondMessage>() => {
            let detail = "This call has more than one message, and only unary calls can have an idempotency key; \
                          nothing was executed. Make it without a key.";
            return Ok(state.plain(StatusCode::NOT_IMPLEMENTED, false, detail));
        }
        Collected::Broken(error) => {
            tracing::debug!(%error, "the request body ended early; nothing was executed");
            let detail = "The request body ended early; nothing was executed. Send the whole request again.";
            return Ok(state.plain(StatusCode::BAD_REQUEST, true, detail));
        }
    };
    parts.headers.remove(http::header::TRANSFER_ENCODING);
    parts.headers.insert(CONTENT_LENGTH, body.len().into());
    seen.is(&parts, &body);
    let (key, checked) = match state.key_of_whole(key, &protection, &parts, &body).await {
        Ok(Keyed { key: Some(key), checked }) => (key, checked),
        Ok(Keyed { key: None, .. }) => {
            return match state.without_key(&operation, &protection) {
                Some(refusal) => Ok(refusal),
                None => pass_without_key(inner, parts, B::from(body)).await,
            };
        }
        Err(refusal) => return Ok(*refusal),
    };
    let tenant = match tenant {
        Some(tenant) => tenant,
        None => match tenant_of(&state, &operation, &parts).await {
            Ok(tenant) => tenant,
            Err(refusal) => return Ok(*refusal),
        },
    };

    let (answer, answered) = oneshot::channel();
    // From here on nothing depends on the client: the task begins before the reservation is made.
    let answering = Arc::clone(&state);
    let executing = async move {
        let key = RecordKey::new(tenant, operation, key.as_str()).in_scope(protection.key_scope);
        let fingerprinted =
            FingerprintedRequest::of(key.clone(), protection, Arc::clone(&state), parts, body, checked);
        let subject = match fingerprinted.await {
            Ok(Some(subject)) => subject,
            Ok(None) => return,
            Err(error) => {
                if let Some(observer) = state.engine.observer() {
                    observer.count(&key.operation, Event::StoreError);
                }
                let _ = answer.send(state.begin_error(&BeginError::Store(error)));
                return;
            }
        };
        let policy = Arc::clone(&subject.protection.policy);
        let incoming = Incoming { key: key.clone(), subject: &subject, policy };
        let decided = match state.engine.begin(incoming).await {
            Ok(decision) => {
                match state.withheld(&decision, &subject.parts, subject.protection.timeout).await {
                    Some(refusal) => Decided::Answer(refusal),
                    None => state.decided(decision, &subject.protection, &subject.parts.headers),
                }
            }
            Err(error) => Decided::Answer(state.begin_error(&error)),
        };
        match decided {
            Decided::Answer(response) => {
                let _ = answer.send(response);
            }
            Decided::Execute(ticket) => {
                let FingerprintedRequest { protection, parts, body, .. } = subject;
                let execution = Execution { state, protection, ticket, key, answer };
                execute(execution, inner, parts, body).await;
            }
        }
    };
    // Boxed at once: it is large, and moved several times.
    let executing = Trace::within(Trace::current(), Box::pin(executing));
    tokio::spawn(executing);
    // The task always answers; only if the runtime shuts down is the outcome unknown.
    Ok(answered.await.unwrap_or_else(|_| answering.unknown_at_exit()))
}

/// Whose request it is, or what is answered where that cannot be told.
async fn tenant_of(
    state: &LayerState,
    operation: &str,
    parts: &Parts,
) -> Result<String, Box<Response<Body>>> {
    Err(Box::new(match state.tenants.tenant(&state.engine, parts).await {
        Ok(FoundTenant::Tenant(tenant)) => return Ok(tenant),
        Ok(FoundTenant::Nobody { challenges }) => state.scope_unresolved(challenges),
        Ok(FoundTenant::Undecided) => state.scope_undecided(),
        Err(error) => {
            if let Some(observer) = state.engine.observer() {
                observer.count(operation, Event::StoreError);
            }
            state.store_unavailable(&error)
        }
    }))
}

/// Has the service answer a request that needs no key and has none. `Semel-*` fields pass in neither direction.
async fn pass_without_key<S, B, R>(
    mut inner: S,
    mut parts: Parts,
    body: B,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    headers::drop_ours(&mut parts.headers);
    let mut response = inner.call(Request::from_parts(parts, body)).await?.map(Body::stream);
    headers::drop_ours(response.headers_mut());
    Ok(response)
}
