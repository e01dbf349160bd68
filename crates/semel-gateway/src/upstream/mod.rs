//! Forwards a request to the service, once, and tells whether it can have arrived.
//!
//! - `target.rs`, `dial.rs`: where the service is, and how it is reached;
//! - `http1/`, `http2/`: connections of either protocol; `socket.rs`: what was written to them;
//! - `failure.rs`: why there is no answer;
//! - `body.rs`: answers as they come.

mod body;
mod dial;
mod failure;
mod http1;
mod http2;
mod socket;
mod target;

pub use body::UpstreamBody;
pub use target::InvalidUpstream;

use crate::headers::{self, ConnectionOptions, ForwardedHeaders, drop_hop_by_hop};
use crate::limits::Limits;
use crate::listener::{InFlight, OtherEnd, PeerAddress, RequestBody, RequestState};
use crate::responses;
use crate::tls::ClientTls;
use bytes::Bytes;
use dial::Dial;
use failure::{Failure, GaveUp};
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::response::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use http1::{Connection, Pool};
use http2::Http2Pool;
use semel::problem::{Code, DocsBase, Format, Problem};
use semel::trace;
use semel::{OperationId, Right};
use semel_tower::{BoxError, OUTCOME, Operation, grpc};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use target::Target;
use tower::Service;

/// For how long a connection is believed to be good for a protected request. A service closes idle connections after some seconds;
/// a request that meets its closing is in doubt.
const FRESH: Duration = Duration::from_secs(1);

/// The service behind the gateway. Cheap to clone; all clones share their connections.
///
/// A request is protected if its extensions hold the layer's [`Operation`]. If no byte of it was written, it is answered 502 with
/// the word that it is retryable; if it was sent and no whole answer came, that is an error, of which the layer makes `unknown`.
/// Nothing is ever sent twice, and nothing by an operation whose right to execute has ended: a request that is half sent by then is broken off.
#[derive(Clone)]
pub struct Upstream {
    shared: Arc<Shared>,
}

/// What the proxy wants to know of a request's caller: an extension of the request.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) in_flight: Option<Arc<InFlight>>,
    pub(crate) forwarded: Arc<ForwardedHeaders>,
    pub(crate) state: RequestState,
    pub(crate) asked: ConnectionOptions,
}

/// What is spoken with the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UpstreamProtocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, without asking first; over TLS, agreed on by ALPN.
    Http2,
}

/// How the service is spoken with.
#[derive(Clone, Default)]
pub struct Transport {
    /// The protocol. Default: HTTP/1.1.
    pub protocol: UpstreamProtocol,
    /// For services at `https://`: whom to believe.
    pub tls: Option<Arc<ClientTls>>,
}

/// The connections to the service.
#[derive(Clone)]
enum UpstreamPool {
    Http1(Arc<Dial>, Arc<Pool>),
    Http2(Arc<Http2Pool>),
}

type Trusts = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

#[derive(Clone)]
struct Shared {
    target: Arc<Target>,
    way: UpstreamPool,
    limits: Limits,
    trusts: Trusts,
    docs: DocsBase,
    format: Format,
}

impl Upstream {
    /// The service at `url`, by HTTP/1.1 and without TLS.
    ///
    /// # Errors
    /// No service can be reached at such an address.
    pub fn new(url: &Uri, limits: &Limits) -> Result<Self, InvalidUpstream> {
        Self::over(url, limits, Transport::default())
    }

    /// The service at `url`, spoken with so.
    ///
    /// # Errors
    /// No service can be reached at such an address.
    pub fn over(url: &Uri, limits: &Limits, transport: Transport) -> Result<Self, InvalidUpstream> {
        let Transport { protocol, tls } = transport;
        let target = Arc::new(Target::new(url)?);
        if target.tls.is_some() && tls.is_none() {
            return Err(InvalidUpstream::Tls(url.clone()));
        }
        let dial = Dial { target: Arc::clone(&target), tls, protocol, timeout: limits.connect_timeout };
        let way = match protocol {
            UpstreamProtocol::Http1 => UpstreamPool::Http1(Arc::new(dial), Pool::new(limits)),
            UpstreamProtocol::Http2 => UpstreamPool::Http2(Http2Pool::new(dial, limits)),
        };
        let shared = Shared {
            target,
            way,
            limits: limits.clone(),
            trusts: Arc::new(|address| address.to_canonical().is_loopback()),
            docs: DocsBase::default(),
            format: Format::default(),
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
    pub fn problems(mut self, docs: DocsBase, format: Format) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        (shared.docs, shared.format) = (docs, format);
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
        let is_call = grpc::is_call(request.method(), request.version(), request.headers());
        Box::pin(async move {
            let protected = |operation: &Operation| (operation.id(), operation.right().clone());
            match request.extensions().get().map(protected) {
                _ if is_call && matches!(shared.way, UpstreamPool::Http1(..)) => Ok(no_grpc(&request)),
                Some((operation_id, right)) => {
                    shared.forward_protected(request, is_call, operation_id, &right).await
                }
                None => Ok(shared.pass_through(request).await),
            }
        })
    }
}

impl Shared {
    async fn forward_protected(
        &self,
        mut request: Request<RequestBody>,
        is_call: bool,
        operation_id: OperationId,
        right: &Right,
    ) -> Result<Response<UpstreamBody>, BoxError> {
        let in_flight = self.prepare(&mut request).and_then(|caller| caller.in_flight);
        if is_call {
            request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
        }
        match self.ask(request, FRESH, in_flight, Some(right)).await {
            Ok(Received::Answer(mut response)) => {
                if is_call {
                    // The layer reads them, and passes none of ours on.
                    response.body_mut().keep_ours();
                } else {
                    // What is stored has no trailers.
                    response.headers_mut().remove(TRAILER);
                }
                Ok(response)
            }
            Ok(Received::Switched(..)) => Err("the service switched protocols without being asked".into()),
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
            return responses::too_long().map(UpstreamBody::whole);
        }
        if let Some(caller) = request.extensions().get::<Caller>() {
            caller.state.pass_through();
        }
        request.body_mut().limit(most);
        // Sent on by its head, a request that is said to have no body would be whole to the service.
        if request.version() == Version::HTTP_2
            && !matches!(request.body_mut().hold_to_length().await, Ok(true))
        {
            return responses::bad_request("The request body is longer than its Content-Length.")
                .map(UpstreamBody::whole);
        }
        let caller = self.prepare(&mut request);
        if let Some(caller) = &caller {
            let version = request.version();
            caller.asked.ask(request.headers_mut(), version);
        }
        let in_flight = caller.as_ref().and_then(|caller| caller.in_flight.clone());
        match self.ask(request, Duration::MAX, in_flight, None).await {
            Ok(Received::Answer(mut response)) => {
                headers::drop_ours(response.headers_mut());
                response
            }
            Ok(Received::Switched(parts, connection)) => {
                Box::pin(self.switch(parts, connection, caller)).await
            }
            Err(Unanswered::Unreachable(error)) => {
                tracing::warn!(%error, "the service cannot be reached");
                self.unreachable(None)
            }
            Err(Unanswered::Broken(error)) => {
                tracing::warn!(%error, "the service did not answer");
                let told = if error.is::<GaveUp>() {
                    responses::gateway_timeout()
                } else {
                    responses::bad_gateway()
                };
                told.map(UpstreamBody::whole)
            }
        }
    }

    /// Makes of a client's request the one that the service gets.
    fn prepare(&self, request: &mut Request<RequestBody>) -> Option<Caller> {
        let mut extensions = std::mem::take(request.extensions_mut());
        let peer = extensions.get().map(|PeerAddress(address)| address.ip());
        let caller = extensions.remove::<Caller>();
        let mut target = self.target.request_target(request.uri());
        let body = request.body();
        let has_unknown_length = !body.is_end_stream() && body.size_hint().exact().is_none();
        let headers = request.headers_mut();
        // The body is asked for from the client when the first piece of it is wanted.
        headers.remove(EXPECT);
        let is_trusted = peer.is_some_and(|peer| (self.trusts)(peer));
        match &caller {
            Some(caller) => caller.forwarded.announce(headers, peer, is_trusted),
            None => ForwardedHeaders::default().announce(headers, peer, is_trusted),
        }
        let version = match &self.way {
            UpstreamPool::Http1(..) => {
                headers.entry(HOST).or_insert_with(|| self.target.authority.clone());
                if has_unknown_length {
                    // Unless it is said, the HTTP library takes a GET or a HEAD for one without a body.
                    headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
                }
                Version::HTTP_11
            }
            UpstreamPool::Http2(_) => {
                target = self.target.with_host(target, headers.remove(HOST));
                Version::HTTP_2
            }
        };
        *request.version_mut() = version;
        *request.uri_mut() = target;
        caller
    }

    /// An exchange, noted where requests are traced.
    async fn ask(
        &self,
        request: Request<RequestBody>,
        freshness: Duration,
        in_flight: Option<Arc<InFlight>>,
        right: Option<&Right>,
    ) -> Result<Received, Unanswered> {
        let begun = trace::service_begins();
        let answer = match &self.way {
            UpstreamPool::Http1(dial, pool) => {
                self.exchange_alone(dial, pool, request, freshness, in_flight, right).await
            }
            // In a box, as what is seldom done is: every request's future would have the room for it.
            UpstreamPool::Http2(lines) => {
                Box::pin(exchange_among_others(lines, request, freshness, in_flight, right)).await
            }
        };
        trace::service_ended(begun, answer.as_ref().ok().map(|received| received.status().as_u16()));
        answer
    }

    /// Over a connection of HTTP/1.1, which has no other request at the same time.
    async fn exchange_alone(
        &self,
        dial: &Dial,
        pool: &Arc<Pool>,
        mut request: Request<RequestBody>,
        freshness: Duration,
        in_flight: Option<Arc<InFlight>>,
        right: Option<&Right>,
    ) -> Result<Received, Unanswered> {
        let mut pooled = pool.take(freshness);
        loop {
            let was_pooled = pooled.is_some();
            let mut connection = match pooled.take() {
                Some(connection) => connection,
                None => {
                    let opening = Box::pin(Connection::open(dial, &self.limits));
                    while_it_lasts(right, opening).await.map_err(Unanswered::Unreachable)?
                }
            };
            match connection.send(request, right).await {
                Ok(response) => {
                    let (mut parts, body) = response.into_parts();
                    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
                        return Ok(Received::Switched(Box::new(parts), connection));
                    }
                    clean(&mut parts);
                    let body = UpstreamBody::coming(body, connection, pool, in_flight);
                    return Ok(Received::Answer(Response::from_parts(parts, body)));
                }
                // The connection was over before anything was written: this is no second try, but still the first.
                Err(Failure::HandedBack(unsent)) if was_pooled => request = *unsent,
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// The service speaks another protocol from now on: what comes over either connection goes out over the other.
    async fn switch(
        &self,
        parts: Box<Parts>,
        connection: Box<Connection>,
        caller: Option<Caller>,
    ) -> Response<UpstreamBody> {
        let Parts { mut headers, .. } = *parts;
        let protocol = headers.remove(UPGRADE);
        let is_one_asked_for = |asked: &HeaderValue| {
            let mut protocols = asked.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
            protocols.any(|asked| {
                protocol.as_ref().is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(asked))
            })
        };
        let caller = caller.filter(|caller| caller.asked.upgrade.as_ref().is_some_and(is_one_asked_for));
        let (Some(caller), Some(protocol)) = (caller, &protocol) else {
            tracing::warn!("the service switched to a protocol that was not asked for");
            return responses::bad_gateway().map(UpstreamBody::whole);
        };
        let Some((stream, early, traffic)) = connection.switched().await else {
            tracing::warn!("the service closed the connection after 101");
            return responses::bad_gateway().map(UpstreamBody::whole);
        };
        caller.state.tunnel(OtherEnd {
            stream: Box::new(stream),
            early,
            passed: Box::new(move || traffic.total()),
            give_up: self.limits.upstream_give_up,
        });
        drop_hop_by_hop(&mut headers);
        headers::drop_ours(&mut headers);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol.clone());
        let mut response = Response::new(UpstreamBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = headers;
        response
    }

    fn unreachable(&self, operation_id: Option<OperationId>) -> Response<UpstreamBody> {
        let detail = match operation_id {
            Some(_) => {
                "The service could not be reached and the request was not sent. Send it again with the same key."
            }
            None => "The service could not be reached and the request was not sent.",
        };
        let mut problem = Problem::new(Code::UpstreamUnreachable, self.format.profile(), detail);
        problem.operation_id = operation_id;
        let mut response = self.format.problem(&problem, &self.docs).map(UpstreamBody::whole);
        // gRPC has words of its own for it.
        response.extensions_mut().insert(problem);
        response
    }
}

/// For a gRPC call to a service of HTTP/1.1.
fn no_grpc(request: &Request<RequestBody>) -> Response<UpstreamBody> {
    tracing::error!(
        path = request.uri().path(),
        "a gRPC call was refused: the service is spoken to over HTTP/1.1; set `upstream_protocol = \"http2\"`"
    );
    let mut response = responses::no_grpc().map(UpstreamBody::whole);
    if request.extensions().get::<Operation>().is_some() {
        response.headers_mut().insert(OUTCOME, HeaderValue::from_static("retryable"));
    }
    response
}

/// What came of the service.
enum Received {
    Answer(Response<UpstreamBody>),
    /// It speaks another protocol from now on, over this connection.
    Switched(Box<Parts>, Box<Connection>),
}

impl Received {
    fn status(&self) -> StatusCode {
        match self {
            Self::Answer(response) => response.status(),
            Self::Switched(head, _) => head.status,
        }
    }
}

/// Makes of the head of the service's answer the one that clients get.
fn clean(parts: &mut Parts) {
    let announced: Vec<HeaderValue> = parts.headers.get_all(TRAILER).iter().cloned().collect();
    drop_hop_by_hop(&mut parts.headers);
    headers::announce(&mut parts.headers, &announced);
    parts.version = Version::HTTP_11;
}

/// Why there is no answer of the service's.
enum Unanswered {
    /// Nothing was sent.
    Unreachable(BoxError),
    /// It was sent.
    Broken(BoxError),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::HandedBack(_) => Self::Unreachable("the service closes new connections".into()),
            Failure::NotSent(error) => Self::Unreachable(error),
            Failure::Sent(error) => Self::Broken(error),
        }
    }
}

/// Waits for something by which nothing of the request is sent yet, for as long as the right to execute lasts. The layer has everything polled
/// when that ends.
async fn while_it_lasts<T>(
    right: Option<&Right>,
    mut waiting: impl Future<Output = Result<T, BoxError>> + Unpin,
) -> Result<T, BoxError> {
    poll_fn(|context| {
        if let Some(Err(ended)) = right.map(Right::check_cheaply) {
            return Poll::Ready(Err(ended.into()));
        }
        Pin::new(&mut waiting).poll(context)
    })
    .await
}

/// Over a connection of HTTP/2, which has any number of others at the same time.
async fn exchange_among_others(
    lines: &Arc<Http2Pool>,
    request: Request<RequestBody>,
    freshness: Duration,
    in_flight: Option<Arc<InFlight>>,
    right: Option<&Right>,
) -> Result<Received, Unanswered> {
    let (mut parts, body) = lines.send(request, freshness, right).await?.into_parts();
    clean(&mut parts);
    Ok(Received::Answer(Response::from_parts(parts, UpstreamBody::stream(body, in_flight))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::fingerprint::{Command, Recipe};
    use semel::{Decision, Engine, Incoming, MemoryStore, Policy, RecordKey, Ticket};

    /// An operation under way. Its right to execute ends with the ticket.
    pub(in crate::upstream) async fn ticket() -> Ticket {
        let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
        let command = Command::new(recipe, None, &serde_json::json!({ "amount": "10.00" })).unwrap();
        let key = RecordKey::new("acc_1", "create_payment", "key-0123456789abcdef");
        let incoming = Incoming { key, subject: &command, policy: Arc::new(Policy::default()) };
        match Engine::new(MemoryStore::new()).begin(incoming).await.unwrap() {
            Decision::Execute(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn every_request_has_room_for_what_it_does_and_not_for_what_is_seldom_done() {
        let upstream = Upstream::new(&"http://127.0.0.1:9".parse().unwrap(), &Limits::default()).unwrap();
        let request = || Request::new(RequestBody::from(Bytes::new()));
        // It is moved several times, and lies in the processor's cache for as long as the service takes.
        let passing = size_of_val(&upstream.shared.pass_through(request()));
        let id = OperationId::from_bytes([0; 16]);
        let ticket = ticket().await;
        let right = ticket.right();
        let protected = size_of_val(&upstream.shared.forward_protected(request(), false, id, &right));
        assert!(passing.max(protected) <= 3 * 1024, "{passing} and {protected} bytes");
    }
}
