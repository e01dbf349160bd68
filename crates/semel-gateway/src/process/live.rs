//! The gateway that answers, and how another one takes its place between two requests.

use crate::capacity::Shares;
use crate::contract::Contract;
use crate::layers::CorsRules;
use crate::limits::Limits;
use crate::listener::core_threads::CoreThreads;
use crate::listener::{AcceptedRequest, AnswerBody, Connections};
use crate::otlp::Tracing;
use crate::route::Routes;
use crate::stack::{Parts, Stack};
use crate::tenant::ScopeConfig;
use crate::tls::ServerTls;
use crate::upstream::Upstream;
use arc_swap::ArcSwap;
use http::Response;
use semel::Engine;
use semel::problem::Format;
use semel_tower::IdempotencyLayer;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tower::Service;

/// A gateway, ready to run.
pub struct Gateway {
    parts: Parts,
    limits: Arc<Limits>,
    tls: Option<Arc<ServerTls>>,
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
    /// A gateway that protects `upstream` by `layer`. It trusts loopback, publishes no contract, and knows of no routes.
    #[must_use]
    pub fn new(layer: IdempotencyLayer, upstream: Upstream, limits: Limits) -> Self {
        let parts = Parts {
            tracing: None,
            contract: None,
            tenants: Arc::default(),
            routes: Arc::new(Routes::unconfigured(false)),
            in_flight: Shares::new(limits.requests_in_flight),
            cors: None,
            format: Format::default(),
            idempotency: layer,
            upstream,
        };
        Self { parts, limits: Arc::new(limits), tls: None }
    }

    /// Speaks TLS with clients, and nothing else.
    #[must_use]
    pub fn over_tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(Arc::new(tls));
        self
    }

    /// Publishes this contract.
    #[must_use]
    pub fn contract(mut self, contract: Contract) -> Self {
        self.parts.contract = Some(Arc::new(contract));
        self
    }

    /// Trusts these peers, and tells tenants apart by these headers: `Connection` may not name them, trailers do not carry them to the
    /// service, and requests of other peers lose them.
    #[must_use]
    pub fn tenants(mut self, tenants: ScopeConfig) -> Self {
        self.parts.tenants = Arc::new(tenants);
        self
    }

    /// Refuses requests that the service could take for one of these routes, though none matches them.
    #[must_use]
    pub fn routes(mut self, routes: Arc<Routes>) -> Self {
        self.parts.routes = routes;
        self
    }

    /// Refuses requests in this format.
    #[must_use]
    pub fn format(mut self, format: Format) -> Self {
        self.parts.format = format;
        self
    }

    /// Lets these pages read answers.
    pub(crate) fn cors(mut self, rules: Option<Arc<CorsRules>>) -> Self {
        self.parts.cors = rules;
        self
    }

    /// Traces every request.
    pub(crate) fn traced(mut self, tracing: Option<Arc<Tracing>>) -> Self {
        self.parts.tracing = tracing;
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
        let core_threads = CoreThreads::start()?;
        Ok(LiveGateway::new(self).run(listener, &core_threads, stop, force).await)
    }
}

/// One configuration's gateway.
struct Generation {
    parts: Parts,
    stack: Stack,
    limits: Arc<Limits>,
}

impl Generation {
    fn of(gateway: Gateway) -> Self {
        let Gateway { parts, limits, .. } = gateway;
        Self { stack: parts.clone().build(), parts, limits }
    }
}

/// The gateway that answers.
pub(crate) struct LiveGateway {
    live: Arc<ArcSwap<Generation>>,
    connections: Connections,
}

impl LiveGateway {
    pub(crate) fn new(gateway: Gateway) -> Arc<Self> {
        let (limits, tls) = (Arc::clone(&gateway.limits), gateway.tls.clone());
        let connections = Connections::new(limits, tls, gateway.parts.trusts());
        let live = Arc::new(ArcSwap::from_pointee(Generation::of(gateway)));
        Arc::new(Self { live, connections })
    }

    /// Puts `next` in force. Requests that begin from now on are answered by it; those that have begun end where they began, and
    /// connections stay as they are, idle or not.
    ///
    /// Both have to protect by the same engine.
    pub(crate) fn replace(&self, mut next: Gateway) {
        // What is in flight counts on.
        let in_flight = Arc::clone(&self.live.load().parts.in_flight);
        in_flight.resize(next.limits.requests_in_flight);
        next.parts.in_flight = in_flight;
        self.connections.apply_config(Arc::clone(&next.limits), next.tls.clone(), next.parts.trusts());
        self.live.store(Arc::new(Generation::of(next)));
    }

    /// As [`Gateway::run`].
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        core_threads: &CoreThreads,
        stop: impl Future<Output = ()>,
        force: impl Future<Output = ()>,
    ) -> Stopped {
        self.connections.serve(listener, core_threads, LiveStack::of(&self.live), stop).await;
        tracing::info!("stopping: no new connections, waiting for requests in flight");
        let Generation { parts, limits, .. } = &*self.live.load_full();
        let engine: &Engine = parts.idempotency.engine();
        let drained = async {
            self.connections.closed().await;
            // What has no connection any more: requests on their way to a reservation, and then what is reserved.
            parts.in_flight.all_back().await;
            engine.drained().await;
        };
        tokio::select! {
            biased;
            () = drained => return Stopped::Drained,
            () = tokio::time::sleep(limits.drain) => {}
            () = force => {}
        }
        let operations = engine.in_flight();
        tracing::warn!(operations, "stopped before all requests in flight had ended");
        Stopped::CutOff { operations }
    }
}

/// The stack in force, as one connection sees it.
///
/// A connection has a clone of its own, so that a request counts no references that all threads share, and takes the next one with the
/// first request after a reload.
#[derive(Clone)]
struct LiveStack {
    live: Arc<ArcSwap<Generation>>,
    seen: Arc<Generation>,
    stack: Stack,
}

impl LiveStack {
    fn of(live: &Arc<ArcSwap<Generation>>) -> Self {
        let seen = live.load_full();
        Self { live: Arc::clone(live), stack: seen.stack.clone(), seen }
    }
}

impl Service<AcceptedRequest> for LiveStack {
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = <Stack as Service<AcceptedRequest>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.stack.poll_ready(context)
    }

    fn call(&mut self, accepted: AcceptedRequest) -> Self::Future {
        let live = self.live.load();
        if !Arc::ptr_eq(&live, &self.seen) {
            self.seen = Arc::clone(&live);
            self.stack = live.stack.clone();
        }
        self.stack.call(accepted)
    }
}
