//! The order of a request: every layer that it passes, from the client's side to the service's.
//!
//! `listener/` accepts the connection, reads the request's head and calls this stack; the answer goes back the same way.

use crate::capacity::Shares;
use crate::contract::Contract;
use crate::layers::{
    BodyErrors, BodyErrorsLayer, Cors, CorsLayer, CorsRules, FilterLayer, Filtered, FormatRefusals,
    FormatRefusalsLayer, HopByHop, LimitInFlight, Normalize, PathAliases, PublishContract, TraceLayer,
    TraceRequests, UntrustedHeaders,
};
use crate::listener::{Trusts, UnderWayHolder};
use crate::otlp::Tracing;
use crate::route::Routes;
use crate::tenant::ScopeConfig;
use crate::upstream::Upstream;
use semel::problem::Format;
use semel_tower::{Idempotency, IdempotencyLayer};
use std::sync::Arc;
use tower::ServiceBuilder;

/// What the layers are made of.
#[derive(Clone)]
pub(crate) struct Parts {
    /// Where spans go; `None` without a collector.
    pub(crate) tracing: Option<Arc<Tracing>>,
    /// What is published; `None`: the service may answer there.
    pub(crate) contract: Option<Arc<Contract>>,
    /// Who is trusted, and by which headers tenants are told apart.
    pub(crate) tenants: Arc<ScopeConfig>,
    /// What is protected.
    pub(crate) routes: Arc<Routes>,
    /// Permits for requests in flight. They outlive a reload.
    pub(crate) in_flight: Arc<Shares<UnderWayHolder>>,
    /// Which pages of other origins may read answers; `None`: the service says so itself.
    pub(crate) cors: Option<Arc<CorsRules>>,
    /// How refusals look.
    pub(crate) format: Format,
    /// Decides what is executed, and stores it.
    pub(crate) idempotency: IdempotencyLayer,
    /// The service.
    pub(crate) upstream: Upstream,
}

impl Parts {
    /// Which peers are believed when they name the client that they forward for.
    pub(crate) fn trusts(&self) -> Trusts {
        let tenants = Arc::clone(&self.tenants);
        Arc::new(move |peer| tenants.trusts(peer))
    }

    /// Builds the stack. The first layer sees a request first, and its answer last.
    pub(crate) fn build(self) -> Stack {
        let trusts = self.trusts();
        ServiceBuilder::new()
            // Continues the client's trace. Outermost, so that a span covers everything that a client waits for.
            .layer(TraceLayer::new(self.tracing))
            // Answers preflights, and says which page may read an answer: of refusals and replays too, so above whatever makes them.
            .layer(CorsLayer::new(self.cors))
            // Puts what the gateway refuses into the profile's format, whichever layer refuses it.
            .layer(FormatRefusalsLayer::new(self.format))
            // One host, one form of target, HTTP/1.1's spelling: whatever follows reads the request in one way only.
            .layer(FilterLayer(Normalize))
            // Removes hop-by-hop fields and Semel's own; refuses fields by which the service could read another key or tenant.
            .layer(FilterLayer(HopByHop::new(self.tenants.headers(), &self.routes.key_headers())))
            // Answers at /.well-known/idempotency. Before the limit: what was promised can be looked up under load.
            .layer(FilterLayer(PublishContract::new(self.contract)))
            // Removes tenant headers that the peer is not trusted with, before anything believes them.
            .layer(FilterLayer(UntrustedHeaders::new(self.tenants)))
            // Refuses other spellings of protected requests: they would reach the service unprotected.
            .layer(FilterLayer(PathAliases::new(self.routes)))
            // Takes a permit, or answers 429 or 503. Refusals above need none.
            .layer(FilterLayer(LimitInFlight::new(self.in_flight, trusts)))
            // Tells the client why its body failed. From here on a request is a plain `http::Request`.
            .layer(BodyErrorsLayer)
            // Finds tenant and key, reserves, and replays or executes: semel-tower's layer.
            .layer(self.idempotency)
            // Forwards to the service, at most once.
            .service(self.upstream)
    }
}

/// The whole stack. Cheap to clone: each connection has a clone of its own.
pub(crate) type Stack =
    TraceRequests<Cors<FormatRefusals<Filtered<Normalize, Filtered<HopByHop, AfterHopByHop>>>>>;
type AfterHopByHop = Filtered<PublishContract, Filtered<UntrustedHeaders, Filtered<PathAliases, Admitted>>>;
type Admitted = Filtered<LimitInFlight, BodyErrors<Idempotency<Upstream>>>;
