//! The gateway: the layer of `semel-tower` around the proxy, behind the entrance, on a listener.

use crate::entrance::Entrance;
use crate::limits::Limits;
use crate::proxy::Upstream;
use crate::server::{Connections, PeerAddress, all_back};
use crate::telemetry::Tracing;
use crate::tls::ServerTls;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Response};
use semel::Engine;
use semel_tower::IdempotencyLayer;
use std::future::Future;
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

/// How a gateway ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// Everything that was under way has ended.
    Drained,
    /// It was told to end at once, or waiting took too long. So many operations were still under way: their outcome will be unknown
    /// once their leases are over.
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

    /// Traces every request.
    pub(crate) fn traced(mut self, tracing: Option<Tracing>) -> Self {
        self.tracing = tracing;
        self
    }

    /// Serves until `stop`; then accepts nothing more, and lets what is under way end: requests first, then operations whose client
    /// has gone. It waits for at most [`Limits::drain`], and no longer than until `force`.
    pub async fn run(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        force: impl Future<Output = ()>,
    ) -> Stopped {
        let Self { entrance, engine, limits, tracing, tls } = self;
        let in_flight = Arc::clone(entrance.in_flight());
        let connections = Connections::new(Arc::clone(&limits), tls);
        match tracing {
            None => connections.serve(listener, move |arrival| entrance.answer(arrival), stop).await,
            Some(tracing) => {
                let answer = move |arrival| tracing.answer(&entrance, arrival);
                connections.serve(listener, answer, stop).await;
            }
        }
        tracing::info!("stopping: no new connections; waiting for what is under way");
        let drained = async {
            connections.closed().await;
            // What has no connection any more: requests on their way to a reservation, and then what is reserved.
            all_back(&in_flight, limits.requests_in_flight).await;
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
