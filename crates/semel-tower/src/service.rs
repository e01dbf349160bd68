//! The service: a request's way from the key to the task that executes it.

use crate::answer::Decided;
use crate::body::{Body, BoxError, Collected, collect};
use crate::execute::{Execution, execute};
use crate::hashing::Hashing;
use crate::headers::{self, IDEMPOTENCY_KEY};
use crate::layer::Config;
use crate::memory::NoRoom;
use crate::protection::{KeyRequirement, Protection};
use crate::scope::Found;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use semel::key::IdempotencyKey;
use semel::observe::Event;
use semel::problem::Code;
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
    config: Arc<Config>,
}

impl<S> Idempotency<S> {
    pub(crate) fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
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
        let (mut parts, body) = request.into_parts();
        let admitted = match self.config.admit(&parts) {
            Admission::Pass => {
                let passing = inner.call(Request::from_parts(parts, body));
                return Box::pin(async move { Ok(passing.await?.map(Body::stream)) });
            }
            Admission::PassWithoutKey => {
                headers::drop_ours(&mut parts.headers);
                let passing = inner.call(Request::from_parts(parts, body));
                return Box::pin(async move {
                    let mut response = passing.await?.map(Body::stream);
                    headers::drop_ours(response.headers_mut());
                    Ok(response)
                });
            }
            Admission::Refuse(response) => return Box::pin(async move { Ok(*response) }),
            Admission::Protect(admitted) => admitted,
        };
        let config = Arc::clone(&self.config);
        let timed = config.engine.observer().cloned().map(|observer| {
            let operation = admitted.operation.clone();
            (observer, operation, Instant::now())
        });
        Box::pin(async move {
            let response = protect(config, inner, *admitted, parts, body).await;
            if let Some((observer, operation, begun)) = timed {
                observer.request(&operation, begun.elapsed());
            }
            Ok(response)
        })
    }
}

/// Whether a request is protected.
enum Admission {
    Pass,
    /// It could be protected, and its client chose otherwise. What is said under Semel's names still passes in neither direction.
    PassWithoutKey,
    Refuse(Box<Response<Body>>),
    Protect(Box<Admitted>),
}

/// A request that is to be protected.
struct Admitted {
    key: IdempotencyKey,
    operation: String,
    protection: Arc<Protection>,
}

impl Config {
    fn admit(&self, parts: &Parts) -> Admission {
        let Some((operation, protection)) = (self.select)(parts) else {
            return Admission::Pass;
        };
        semel::trace::note(|noted| noted.operation = Some(operation.as_str().into()));
        let refuse = |code, detail| Admission::Refuse(Box::new(self.key_problem(code, detail)));
        let key = self.key_rules.parse(parts.headers.get_all(IDEMPOTENCY_KEY).iter());
        if let (Ok(None), Some(observer)) = (&key, self.engine.observer()) {
            observer.count(&operation, Event::MissingKey);
        }
        match key {
            Ok(Some(key)) => Admission::Protect(Box::new(Admitted { key, operation, protection })),
            Ok(None) if protection.key == KeyRequirement::Optional => Admission::PassWithoutKey,
            Ok(None) => refuse(
                Code::KeyMissing,
                "This operation requires an Idempotency-Key header. Create one key per operation (for example a \
                 UUID), and send the same key with every retry."
                    .into(),
            ),
            Err(error) => refuse(Code::KeyInvalid, error.to_string()),
        }
    }
}

/// Reads the request, then hands it to a task of its own and waits for the answer. Only this waiting ends when the client hangs
/// up.
async fn protect<S, B, R>(
    config: Arc<Config>,
    inner: S,
    admitted: Admitted,
    mut parts: Parts,
    body: B,
) -> Response<Body>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + From<Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    R::Error: Into<BoxError>,
{
    let tenant = match config.scope.tenant(&config.engine, &parts).await {
        Ok(Found::Tenant(tenant)) => tenant,
        Ok(Found::Nobody { challenges }) => return config.scope_unresolved(challenges),
        Ok(Found::Undecided) => return config.scope_undecided(),
        Err(error) => {
            if let Some(observer) = config.engine.observer() {
                observer.count(&admitted.operation, Event::StoreError);
            }
            return config.store_unavailable(&error);
        }
    };
    let limit = admitted.protection.max_request_body;
    let announced =
        parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return config.too_large(limit);
    }
    let mut held = config.memory.hold();
    let body = match collect(body, limit, |more| held.grow(more)).await {
        Collected::Whole(bytes) => held.until_gone(bytes),
        Collected::TooLong(..) => return config.too_large(limit),
        Collected::Broken(error) if error.is::<NoRoom>() => return config.no_room_for_request(),
        Collected::Broken(error) => {
            tracing::debug!(%error, "the request body broke off; nothing was executed");
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::BAD_REQUEST;
            return response;
        }
    };
    parts.headers.remove(http::header::TRANSFER_ENCODING);
    parts.headers.insert(CONTENT_LENGTH, body.len().into());

    let (answer, answered) = oneshot::channel();
    // From here on nothing depends on the client: the task begins before the reservation is made.
    let answering = Arc::clone(&config);
    let executing = async move {
        let key = RecordKey::new(tenant, admitted.operation, admitted.key.as_str());
        let hashing = Hashing::of(key.clone(), admitted.protection, Arc::clone(&config), parts, body);
        let subject = match hashing.await {
            Ok(Some(subject)) => subject,
            Ok(None) => return,
            Err(error) => {
                if let Some(observer) = config.engine.observer() {
                    observer.count(&key.operation, Event::StoreError);
                }
                let _ = answer.send(config.begin_error(&BeginError::Store(error)));
                return;
            }
        };
        let policy = Arc::clone(&subject.protection.policy);
        let incoming = Incoming { key: key.clone(), subject: &subject, policy };
        let decided = match config.engine.begin(incoming).await {
            Ok(decision) => config.decided(decision, &subject.protection.policy),
            Err(error) => Decided::Answer(config.begin_error(&error)),
        };
        match decided {
            Decided::Answer(response) => {
                let _ = answer.send(response);
            }
            Decided::Execute(ticket) => {
                let Hashing { protection, parts, body, .. } = subject;
                let execution = Execution { config, protection, ticket, key, answer };
                execute(execution, inner, parts, body).await;
            }
        }
    };
    // In a box before anything else is done with it: it is large, and moved several times.
    let executing = Trace::within(Trace::current(), Box::pin(executing));
    tokio::spawn(executing);
    // The task answers in every case; if the runtime itself is going down, all that can be said is that it is not known.
    answered.await.unwrap_or_else(|_| answering.unknown_at_exit())
}
