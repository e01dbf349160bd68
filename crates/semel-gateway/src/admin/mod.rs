//! The admin API: what operators, probes and Prometheus ask, on a listener of its own.
//!
//! `access.rs` says who may ask, `query.rs` and `resolution.rs` read what is asked, `operations.rs` and `resolve.rs` answer in
//! the shapes of `document.rs`, and what is wrong goes out by `problem.rs`.

mod access;
mod audit;
mod audit_query;
mod body;
mod clock;
mod csv;
mod document;
mod dry_run;
mod event;
mod openapi;
mod operations;
mod outbox;
mod poll;
mod probes;
mod problem;
mod query;
mod reload;
mod reserve;
mod resolution;
mod resolutions;
mod resolve;
mod schemas;
mod scrape;
mod selection;
mod server;
mod webhooks;
mod whoami;

pub use probes::{Liveness, Readiness};
pub use server::serve;
pub(crate) use server::{LiveAdmin, serve_at};

use crate::acts::{Acts, Policies};
use crate::config::ConsoleConfig;
use crate::console::{self, ConsoleSettings, ReplacedConfig};
use crate::contract::Contract;
use crate::identity::{Directory, Role};
use crate::metrics::{Metrics, MetricsSnapshot};
use crate::reload::Reload;
use crate::tls::ServerTls;
use axum::Router;
use axum::middleware::from_fn_with_state;
use problem::AdminProblem;
use semel::problem::{DocsBase, Format};
use semel::{Engine, Policy};
use semel_events::outbox::{Counts, OutboxAdmin};
use semel_tower::IdempotencyLayer;
use semel_worker::WebhookIntake;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the admin API works with.
pub struct Admin {
    /// The engine whose records are shown and settled.
    pub engine: Engine,
    /// What `/metrics` tells.
    pub metrics: Arc<Metrics>,
    /// Who may use it. Empty: requests from this machine only, and they change nothing.
    pub people: Directory,
    /// The rules of each operation; what the configuration does not know has the default ones.
    pub policies: Policies,
    /// Who may report outcomes by webhook. `None`: webhooks are refused.
    pub webhooks: Option<Arc<WebhookIntake>>,
    /// What waits to be told to others; none: the store has no outbox.
    pub outbox: Option<Arc<dyn OutboxAdmin>>,
    /// What the publisher in this process has done. `None` without a publisher.
    pub published: Option<Arc<Counts>>,
    /// What it is served with; none: no TLS.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether requests should come here at all.
    pub readiness: Readiness,
    /// Whether the process works.
    pub liveness: Liveness,
    /// Triggers a reload; `None` without a config file.
    pub reload: Option<Reload>,
    /// How clients' refusals look, for the description.
    pub format: Format,
    /// Where their codes are explained.
    pub docs: DocsBase,
    /// What answers clients: for dry runs.
    pub layer: IdempotencyLayer,
    /// What the audit calls this process.
    pub instance: Arc<str>,
    /// The pages for people, if there are any.
    pub console: Option<ConsolePages>,
}

/// What the console shows besides what the API tells.
pub struct ConsolePages {
    /// Its settings.
    pub config: ConsoleConfig,
    /// What clients are promised.
    pub contract: Option<Contract>,
    /// The configuration in force, without secrets.
    pub shown_config: String,
    /// The one before the last reload.
    pub replaced: Option<ReplacedConfig>,
}

impl Admin {
    /// An admin API without a token: for loopback alone, and changing nothing.
    #[must_use]
    pub fn new(engine: Engine, metrics: Arc<Metrics>) -> Self {
        let policy = Arc::new(Policy::default());
        Self {
            layer: IdempotencyLayer::with_engine(engine.clone()),
            engine,
            metrics,
            people: Directory::default(),
            policies: Arc::new(move |_| Arc::clone(&policy)),
            webhooks: None,
            outbox: None,
            published: None,
            tls: None,
            readiness: Readiness::default(),
            liveness: Liveness::default(),
            reload: None,
            format: Format::default(),
            docs: DocsBase::default(),
            console: None,
            instance: process_name().into(),
        }
    }

    /// What operators can do here.
    #[must_use]
    pub fn acts(&self) -> Acts {
        Acts {
            engine: self.engine.clone(),
            policies: Arc::clone(&self.policies),
            outbox: self.outbox.clone(),
            reload: self.reload.clone(),
            layer: self.layer.clone(),
            instance: Arc::clone(&self.instance),
        }
    }

    /// What there is to tell of the process and its store.
    pub(crate) fn snapshot(&self) -> MetricsSnapshot {
        MetricsSnapshot {
            engine: self.engine.clone(),
            metrics: Arc::clone(&self.metrics),
            webhooks: self.webhooks.clone(),
            outbox: self.outbox.clone(),
            published: self.published.clone(),
        }
    }
}

/// The machine and the process, as far as they are known.
fn process_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}/{}", std::process::id())
}

/// What the handlers share.
struct Shared {
    admin: Admin,
    acts: Acts,
    snapshot: MetricsSnapshot,
}

/// All routes, each with its description. What brings its own proof of who sends it, as a signed webhook does, goes beside the
/// guarded ones.
fn routes(shared: &Arc<Shared>) -> OpenApiRouter<Arc<Shared>> {
    let at_least = |role| from_fn_with_state((Arc::clone(shared), role), access::at_least);
    let reading = OpenApiRouter::new()
        .routes(routes!(whoami::whoami))
        .routes(routes!(operations::list))
        .routes(routes!(operations::show))
        .routes(routes!(outbox::list))
        .routes(routes!(outbox::show))
        .routes(routes!(clock::show))
        .routes(routes!(audit::list))
        .routes(routes!(audit::export))
        .routes(routes!(scrape::stats))
        .route_layer(at_least(Role::Reader));
    let settling = OpenApiRouter::new()
        .routes(routes!(resolve::resolve))
        .routes(routes!(poll::poll))
        .routes(routes!(outbox::requeue))
        .route_layer(at_least(Role::Operator));
    let administering = OpenApiRouter::new()
        .routes(routes!(resolutions::resolve_many))
        .routes(routes!(outbox::discard))
        .routes(routes!(reload::reload))
        .routes(routes!(clock::accept))
        .route_layer(at_least(Role::Admin));
    let measuring = OpenApiRouter::new()
        .routes(routes!(scrape::metrics))
        .route_layer(from_fn_with_state(Arc::clone(shared), access::to_measure));
    openapi::described()
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(openapi::document))
        .routes(routes!(webhooks::receive))
        .merge(measuring)
        .merge(reading)
        .merge(settling)
        .merge(administering)
}

fn router(mut admin: Admin) -> Router {
    let console = admin.console.take().map(|pages| ConsoleSettings {
        people: admin.people.clone(),
        acts: admin.acts(),
        store: admin.engine.store().clone(),
        has_tls: admin.tls.is_some(),
        config: pages.config,
        contract: pages.contract,
        shown_config: pages.shown_config,
        replaced: pages.replaced,
    });
    let snapshot = admin.snapshot();
    let shared = Arc::new(Shared { acts: admin.acts(), admin, snapshot });
    let (router, mut description) = routes(&shared).split_for_parts();
    openapi::add_one_of_constraints(&mut description);
    openapi::add_refusals(&mut description, &shared.admin.format, &shared.admin.docs);
    let api = router
        .fallback(async || AdminProblem::no_such_path())
        .method_not_allowed_fallback(async || AdminProblem::method_not_allowed())
        .layer(axum::Extension(openapi::Written::of(&description)))
        .with_state(shared);
    match console {
        Some(settings) => console::router(api.clone(), settings).merge(api),
        None => api,
    }
}
