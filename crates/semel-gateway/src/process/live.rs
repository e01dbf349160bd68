//! The gateway: the layer of `semel-tower` around the proxy, behind the entrance, on a listener.

use crate::layers::entrance::Entrance;
use crate::limits::Limits;
use crate::listener::core_threads::Lanes;
use crate::listener::{AnswerBody, Arrival, Connections, PeerAddress};
use crate::otlp::Tracing;
use crate::tls::ServerTls;
use crate::upstream::Upstream;
use arc_swap::ArcSwap;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Response};
use semel::Engine;
use semel_tower::IdempotencyLayer;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tower::Layer as _;

/// The gateway, ready to run.
pub struct Gateway {
    entrance: Entrance,
    engine: Engine,
    limits: Arc<Limits>,
    tracing: Option<Tracing>,
    tls: Option<Arc<ServerTls>>,
}

/// The gateway that answers, in whose place another one can be put between two requests.
pub(crate) struct Seat {
    incumbent: ArcSwap<Gateway>,
    connections: Connections,
}

/// How a gateway ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// Everything that was under way has ended.
    Drained,
    /// It was told to end at once, or waiting took too long. So many operations were still under way: their outcome will be unknown
    /// once their leases are over. None: something else had not ended, such as a question to the service.
    CutOff {
        /// Operations without an outcome.
        operations: usize,
    },
}

impl Gateway {
    /// A gateway that protects `upstream` by `layer`.
    #[must_use]
    pub fn new(layer: &IdempotencyLayer, upstream: Upstream, limits: Limits) -> Self {
        let entrance = Entrance::new(layer.layer(upstream), limits.requests_in_flight);
        let (engine, limits) = (layer.engine().clone(), Arc::new(limits));
        Self { entrance, engine, limits, tracing: None, tls: None }
    }

    /// Speaks TLS with clients, and nothing else.
    #[must_use]
    pub fn over_tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(Arc::new(tls));
        self
    }

    /// Answers requests for `/.well-known/idempotency`, where the contract is published.
    #[must_use]
    pub fn contract(
        mut self,
        answer: impl Fn(&Method, &HeaderMap) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.entrance.publish(answer);
        self
    }

    /// Looks at every other request before the layer does: to take out of it what its peer is not believed, or to answer it at once.
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(PeerAddress, &mut Parts) -> Option<Response<Bytes>> + Send + Sync + 'static,
    ) -> Self {
        self.entrance.check(check);
        self
    }

    /// Names the headers by which tenants are told apart. As with the key and credentials, `Connection` may not name them, and trailers do
    /// not carry them to the service.
    #[must_use]
    pub fn tenant_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.entrance.tell_tenants_by(names);
        self
    }

    /// Which peers forward the requests of others: what those hold of the gateway's capacity counts for the client whom they name (`X-Forwarded-For`,
    /// `Forwarded`). Default: loopback.
    #[must_use]
    pub fn trusting(mut self, trusts: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        self.entrance.trust(Arc::new(trusts));
        self
    }

    /// Traces every request.
    pub(crate) fn traced(mut self, tracing: Option<Tracing>) -> Self {
        self.tracing = tracing;
        self
    }

    /// Serves until `stop`; then accepts nothing more, and lets what is under way end: requests first, then operations whose client
    /// has gone. It waits for at most [`Limits::drain`], and no longer than until `force`.
    ///
    /// Connections are served by threads of its own, one for each core.
    ///
    /// # Errors
    /// The system has no more threads.
    pub async fn run(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        force: impl Future<Output = ()>,
    ) -> io::Result<Stopped> {
        let lanes = Lanes::start()?;
        Ok(Seat::of(self).run(listener, &lanes, stop, force).await)
    }

    fn answer(&self, arrival: Arrival) -> impl Future<Output = Response<AnswerBody>> + Send + use<> {
        let answering = match &self.tracing {
            None => Answering::Untraced(self.entrance.answer(arrival)),
            Some(tracing) => Answering::Traced(tracing.answer(&self.entrance, arrival)),
        };
        async {
            match answering {
                Answering::Untraced(answer) => answer.await,
                Answering::Traced(answer) => answer.await,
            }
        }
    }
}

enum Answering<U, T> {
    Untraced(U),
    Traced(T),
}

impl Seat {
    pub(crate) fn of(gateway: Gateway) -> Arc<Self> {
        let connections =
            Connections::new(Arc::clone(&gateway.limits), gateway.tls.clone(), gateway.entrance.trusts());
        Arc::new(Self { incumbent: ArcSwap::from_pointee(gateway), connections })
    }

    /// Requests that begin from now on are the next one's. Those that have begun end where they began, and connections stay as they are:
    /// whether or not one is in the middle of a request is nothing that this looks at.
    ///
    /// Both have to protect by the same engine.
    pub(crate) fn take(&self, mut next: Gateway) {
        let in_flight = Arc::clone(self.incumbent.load().entrance.in_flight());
        in_flight.resize(next.limits.requests_in_flight);
        next.entrance.share(&in_flight);
        self.connections.go_by(Arc::clone(&next.limits), next.tls.clone(), next.entrance.trusts());
        self.incumbent.store(Arc::new(next));
    }

    /// As [`Gateway::run`].
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        lanes: &Lanes,
        stop: impl Future<Output = ()>,
        force: impl Future<Output = ()>,
    ) -> Stopped {
        let seat = Arc::clone(&self);
        let answer = move |arrival| seat.incumbent.load().answer(arrival);
        self.connections.serve(listener, lanes, answer, stop).await;
        tracing::info!("stopping: no new connections; waiting for what is under way");
        let Gateway { entrance, engine, limits, .. } = &*self.incumbent.load_full();
        let drained = async {
            self.connections.closed().await;
            // What has no connection any more: requests on their way to a reservation, and then what is reserved.
            entrance.in_flight().all_back().await;
            engine.drained().await;
        };
        tokio::select! {
            biased;
            () = drained => return Stopped::Drained,
            () = tokio::time::sleep(limits.drain) => {}
            () = force => {}
        }
        let operations = engine.outstanding();
        tracing::warn!(operations, "stopped before everything had ended");
        Stopped::CutOff { operations }
    }
}
