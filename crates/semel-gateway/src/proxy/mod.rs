//! Forwards a request to the service, once, and tells whether it can have arrived.
//!
//! - `target.rs`: where the service is;
//! - `pool.rs`, `connection.rs`, `socket.rs`: connections, and what is known of them;
//! - `headers.rs`, `forwarded.rs`: which fields go through, and which are added;
//! - `body.rs`: answers as they come.

mod body;
mod connection;
mod forwarded;
mod headers;
mod pool;
mod socket;
mod target;

pub use body::UpstreamBody;
pub(crate) use forwarded::Introduction;
pub(crate) use headers::{KeyIsHopByHop, drop_claims, drop_hop_by_hop};
pub use target::InvalidUpstream;

use crate::answer;
use crate::limits::Limits;
use crate::server::{Link, PeerAddress, RequestBody};
use connection::{Connection, Failure, GaveUp};
use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use pool::Pool;
use semel::OperationId;
use semel::problem::{Code, DocsBase, Problem, Profile};
use semel::trace;
use semel_tower::{BoxError, OUTCOME, Operation};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use target::Target;
use tokio::sync::OwnedSemaphorePermit;
use tower::Service;

/// For how long a connection is believed to be good for a protected request. A service closes idle connections after some seconds;
/// a request that meets its closing is in doubt.
const FRESH: Duration = Duration::from_secs(1);

/// The service behind the gateway. Cheap to clone; all clones share their connections.
///
/// A request is protected if its extensions hold the layer's [`Operation`]. If no byte of it was written, it is answered 502 with
/// the word that it is retryable; if it was sent and no whole answer came, that is an error, of which the layer makes `unknown`.
/// Nothing is ever sent twice.
#[derive(Clone)]
pub struct Upstream {
    shared: Arc<Shared>,
}

/// A permit to work on a request, held until the answer's body has ended.
pub(crate) type InFlight = OwnedSemaphorePermit;

/// What the proxy wants to know of a request's caller: an extension of the request.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) introduction: Arc<Introduction>,
    pub(crate) link: Link,
}

type Trusts = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

#[derive(Clone)]
struct Shared {
    target: Arc<Target>,
    pool: Arc<Pool>,
    limits: Limits,
    trusts: Trusts,
    docs: DocsBase,
    profile: Profile,
}

impl Upstream {
    /// The service at `url`.
    ///
    /// # Errors
    /// No service can be reached at such an address.
    pub fn new(url: &Uri, limits: &Limits) -> Result<Self, InvalidUpstream> {
        let shared = Shared {
            target: Arc::new(Target::new(url)?),
            pool: Pool::new(limits),
            limits: limits.clone(),
            trusts: Arc::new(|address| address.to_canonical().is_loopback()),
            docs: DocsBase::default(),
            profile: Profile::default(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Which peers are believed when they say whose request it was (`Forwarded`, `X-Forwarded-*`). Default: loopback.
    #[must_use]
    pub fn trusting(mut self, trusts: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.shared).trusts = Arc::new(trusts);
        self
    }

    /// How problems are told to clients.
    #[must_use]
    pub fn problems(mut self, docs: DocsBase, profile: Profile) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        (shared.docs, shared.profile) = (docs, profile);
        self
    }
}

impl Service<Request<RequestBody>> for Upstream {
    type Response = Response<UpstreamBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<UpstreamBody>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            match request.extensions().get().map(Operation::id) {
                Some(operation_id) => shared.forward_protected(request, operation_id).await,
                None => Ok(shared.pass_through(request).await),
            }
        })
    }
}

impl Shared {
    async fn forward_protected(
        &self,
        mut request: Request<RequestBody>,
        operation_id: OperationId,
    ) -> Result<Response<UpstreamBody>, BoxError> {
        let in_flight = self.prepare(&mut request);
        match self.ask(request, FRESH, in_flight).await {
            Ok(response) => Ok(response),
            Err(Unanswered::Unreachable(error)) => {
                tracing::warn!(%operation_id, %error, "the service cannot be reached; nothing was sent");
                let mut response = self.unreachable(Some(operation_id));
                response.headers_mut().insert(OUTCOME, HeaderValue::from_static("retryable"));
                Ok(response)
            }
            Err(Unanswered::Broken(error)) => Err(error),
        }
    }

    async fn pass_through(&self, mut request: Request<RequestBody>) -> Response<UpstreamBody> {
        let most = self.limits.pass_through_body;
        let announced =
            request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if most.is_some_and(|most| announced > Some(most)) {
            return answer::too_long().map(UpstreamBody::whole);
        }
        if let Some(caller) = request.extensions().get::<Caller>() {
            caller.link.pass_through();
        }
        request.body_mut().limit(most);
        let in_flight = self.prepare(&mut request);
        match self.ask(request, Duration::MAX, in_flight).await {
            Ok(mut response) => {
                headers::drop_ours(response.headers_mut());
                response
            }
            Err(Unanswered::Unreachable(error)) => {
                tracing::warn!(%error, "the service cannot be reached");
                self.unreachable(None)
            }
            Err(Unanswered::Broken(error)) => {
                tracing::warn!(%error, "the service did not answer");
                let told =
                    if error.is::<GaveUp>() { answer::gateway_timeout() } else { answer::bad_gateway() };
                told.map(UpstreamBody::whole)
            }
        }
    }

    /// Makes of a client's request the one that the service gets.
    fn prepare(&self, request: &mut Request<RequestBody>) -> Option<Arc<InFlight>> {
        let mut extensions = std::mem::take(request.extensions_mut());
        let peer = extensions.get().map(|PeerAddress(address)| address.ip());
        let caller = extensions.remove::<Caller>();
        *request.version_mut() = Version::HTTP_11;
        *request.uri_mut() = self.target.request_target(request.uri());
        let headers = request.headers_mut();
        // The body is asked for from the client when the first piece of it is wanted.
        headers.remove(EXPECT);
        let is_trusted = peer.is_some_and(|peer| (self.trusts)(peer));
        match &caller {
            Some(caller) => caller.introduction.announce(headers, peer, is_trusted),
            None => Introduction::default().announce(headers, peer, is_trusted),
        }
        headers.entry(HOST).or_insert_with(|| self.target.authority.clone());
        caller.map(|caller| caller.in_flight)
    }

    /// An exchange, noted where requests are traced.
    async fn ask(
        &self,
        request: Request<RequestBody>,
        freshness: Duration,
        in_flight: Option<Arc<InFlight>>,
    ) -> Result<Response<UpstreamBody>, Unanswered> {
        let begun = trace::service_begins();
        let answer = self.exchange(request, freshness, in_flight).await;
        trace::service_ended(begun, answer.as_ref().ok().map(|answer| answer.status().as_u16()));
        answer
    }

    async fn exchange(
        &self,
        mut request: Request<RequestBody>,
        freshness: Duration,
        in_flight: Option<Arc<InFlight>>,
    ) -> Result<Response<UpstreamBody>, Unanswered> {
        let mut pooled = self.pool.take(freshness);
        loop {
            let was_pooled = pooled.is_some();
            let mut connection = match pooled.take() {
                Some(connection) => connection,
                None => {
                    Connection::open(&self.target, &self.limits).await.map_err(Unanswered::Unreachable)?
                }
            };
            match connection.send(request).await {
                Ok(response) => return self.received(response, connection, in_flight),
                // The connection was over before anything was written: this is no second try, but still the first.
                Err(Failure::HandedBack(unsent)) if was_pooled => request = *unsent,
                Err(Failure::HandedBack(_)) => {
                    return Err(Unanswered::Unreachable("the service closes new connections".into()));
                }
                Err(Failure::NotSent(error)) => return Err(Unanswered::Unreachable(error)),
                Err(Failure::Sent(error)) => return Err(Unanswered::Broken(error)),
            }
        }
    }

    fn received(
        &self,
        response: Response<hyper::body::Incoming>,
        connection: Box<Connection>,
        in_flight: Option<Arc<InFlight>>,
    ) -> Result<Response<UpstreamBody>, Unanswered> {
        let (mut parts, body) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Unanswered::Broken("the service switches protocols, which nobody asked for".into()));
        }
        // Keys are not in answers.
        let _ = drop_hop_by_hop(&mut parts.headers);
        parts.version = Version::HTTP_11;
        Ok(Response::from_parts(parts, UpstreamBody::coming(body, connection, &self.pool, in_flight)))
    }

    fn unreachable(&self, operation_id: Option<OperationId>) -> Response<UpstreamBody> {
        let detail = match operation_id {
            Some(_) => {
                "The service could not be reached and the request was not sent. Send it again with the same key."
            }
            None => "The service could not be reached and the request was not sent.",
        };
        let mut problem = Problem::new(Code::UpstreamUnreachable, self.profile, detail);
        problem.operation_id = operation_id;
        problem.into_response(&self.docs).map(UpstreamBody::whole)
    }
}

/// Why there is no answer of the service's.
enum Unanswered {
    /// Nothing was sent.
    Unreachable(BoxError),
    /// It was sent.
    Broken(BoxError),
}
