//! The admin API: what operators, probes and Prometheus ask, on a listener of its own.
//!
//! `access.rs` says who may ask, `query.rs` and `resolution.rs` read what is asked, `operations.rs` and `resolve.rs` answer in
//! the shapes of `document.rs`, and what is wrong goes out by `problem.rs`.

mod access;
mod document;
mod operations;
mod outbox;
mod probes;
mod problem;
mod query;
mod reload;
mod resolution;
mod resolve;
mod scrape;
mod server;
mod webhooks;
mod word;

pub use probes::Readiness;
pub use server::serve;
pub(crate) use server::{AdminSeat, serve_at};

use crate::metrics::Metrics;
use crate::reload::Reload;
use crate::secret::Secret;
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use problem::AdminProblem;
use scrape::Scrapes;
use semel::{Engine, Policy};
use semel_relay::WebhookIntake;
use semel_relay::outbox::{Counts, Desk};
use std::sync::Arc;

/// The rules of the operation of this name: they say how long what is settled is kept.
pub type Policies = Arc<dyn Fn(&str) -> Arc<Policy> + Send + Sync>;

/// What the admin API works with.
pub struct Admin {
    /// The engine whose records are shown and settled.
    pub engine: Engine,
    /// What `/metrics` tells.
    pub metrics: Arc<Metrics>,
    /// The bearer token; without one the API is for loopback alone, and changes nothing.
    pub token: Option<Secret>,
    /// The rules of each operation; what the configuration does not know has the default ones.
    pub policies: Policies,
    /// Who may tell by webhook what became of an operation; none: nobody.
    pub webhooks: Option<Arc<WebhookIntake>>,
    /// What waits to be told to others; none: the store has no outbox.
    pub outbox: Option<Arc<dyn Desk>>,
    /// What a publisher in this process has done; none: there is none.
    pub published: Option<Arc<Counts>>,
    /// Whether requests should come here at all.
    pub readiness: Readiness,
    /// Has the configuration read anew; none: there is none.
    pub reload: Option<Reload>,
}

impl Admin {
    /// An admin API without a token: for loopback alone, and changing nothing.
    #[must_use]
    pub fn new(engine: Engine, metrics: Arc<Metrics>) -> Self {
        let policy = Arc::new(Policy::default());
        Self {
            engine,
            metrics,
            token: None,
            policies: Arc::new(move |_| Arc::clone(&policy)),
            webhooks: None,
            outbox: None,
            published: None,
            readiness: Readiness::default(),
            reload: None,
        }
    }
}

/// What the handlers share.
struct Shared {
    admin: Admin,
    scrapes: Arc<Scrapes>,
}

/// All routes. What brings its own proof of who sends it, as a signed webhook does, goes beside the guarded ones.
fn router(admin: Admin, scrapes: &Arc<Scrapes>) -> Router {
    let shared = Arc::new(Shared { admin, scrapes: Arc::clone(scrapes) });
    let reading = Router::new()
        .route("/v1/operations", get(operations::list))
        .route("/v1/operations/{id}", get(operations::show))
        .route("/v1/outbox", get(outbox::list))
        .route("/v1/outbox/{id}", get(outbox::show))
        .route("/v1/stats", get(scrape::stats))
        .route_layer(from_fn_with_state(Arc::clone(&shared), access::to_read));
    let changing = Router::new()
        .route("/v1/operations/{id}/resolve", post(resolve::resolve))
        .route("/v1/outbox/{id}/requeue", post(outbox::requeue))
        .route("/v1/outbox/{id}/drop", post(outbox::discard))
        .route("/v1/reload", post(reload::reload))
        .route_layer(from_fn_with_state(Arc::clone(&shared), access::to_change));
    let measuring = Router::new()
        .route("/metrics", get(scrape::metrics))
        .route_layer(from_fn_with_state(Arc::clone(&shared), access::to_measure));
    Router::new()
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .route("/v1/webhooks/{source}", post(webhooks::receive))
        .merge(measuring)
        .merge(reading)
        .merge(changing)
        .fallback(async || AdminProblem::no_such_path())
        .method_not_allowed_fallback(async || AdminProblem::method_not_allowed())
        .with_state(shared)
}
