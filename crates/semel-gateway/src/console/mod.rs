//! The web console: pages for the people on call, on the admin listener.
//!
//! The path of a request: `headers.rs` (what every answer carries) → `gate.rs` (who it is; no form of another page's) → a screen. Screens ask the
//! admin API inside the process (`api.rs`), so that roles and tenants are decided in one place, and show what it tells after `strangers.rs` has made
//! it harmless. What operators do goes through the same acts as the API's.
//!
//! Pages are complete without a script: `assets/` adds keys, relative times and news.

mod acted;
mod api;
mod assets;
mod attempts;
mod audit;
mod bulk;
mod contract;
mod cookie;
mod documents;
mod form;
mod gate;
mod headers;
mod id;
mod known;
mod links;
mod moment;
mod next_retry;
mod operation;
mod operations;
mod outbox;
mod overview;
mod page;
mod replaced;
mod reveal;
mod same_origin;
mod session;
mod settle;
mod sign_in;
mod signals;
mod strangers;
mod visitor;
mod words;

pub use replaced::ReplacedConfig;

use crate::acts::Acts;
use crate::config::ConsoleConfig;
use crate::contract::Contract;
use crate::identity::Directory;
use api::Api;
use attempts::Attempts;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use http::StatusCode;
use known::Known;
use semel::StoreHandle;
use session::Sessions;
use std::sync::Arc;

/// A form at most: an answer that is typed in, percent-encoded.
const LONGEST_FORM: usize = 4 << 20;

/// What the console shows besides what the API tells.
pub(crate) struct ConsoleSettings {
    pub(crate) people: Directory,
    pub(crate) acts: Acts,
    pub(crate) store: StoreHandle,
    pub(crate) has_tls: bool,
    pub(crate) config: ConsoleConfig,
    pub(crate) contract: Option<Contract>,
    /// The configuration in force, without secrets.
    pub(crate) shown_config: String,
    pub(crate) replaced: Option<ReplacedConfig>,
}

/// What the screens share.
struct Console {
    api: Api,
    sessions: Sessions,
    attempts: Attempts,
    known: Known,
    settings: ConsoleSettings,
}

/// The console's routes, over those of the admin API.
pub(crate) fn router(api: Router, settings: ConsoleSettings) -> Router {
    let console = Arc::new(Console {
        api: Api::new(api),
        sessions: Sessions::new(settings.store.clone(), settings.config.session),
        attempts: Attempts::default(),
        known: Known::default(),
        settings,
    });
    let inside = Router::new()
        .route("/console", get(overview::show))
        .route("/console/operations", get(operations::show))
        .route("/console/newer", get(operations::newer))
        .route("/console/operations/{id}", get(operation::show))
        .route("/console/operations/{id}/version", get(operation::version))
        .route("/console/operations/{id}/settle", get(settle::show).post(settle::send))
        .route("/console/operations/{id}/poll", post(operation::poll))
        .route("/console/operations/{id}/reveal", post(reveal::show))
        .route("/console/operations/{id}/download", post(reveal::download))
        .route("/console/bulk", get(bulk::show).post(bulk::freeze))
        .route("/console/bulk/{id}", get(bulk::run))
        .route("/console/bulk/{id}/step", post(bulk::step))
        .route("/console/bulk/{id}/turn/{way}", post(bulk::turn))
        .route("/console/audit", get(audit::show))
        .route("/console/audit/export", get(audit::export))
        .route("/console/reload", post(contract::reload))
        .route("/console/outbox", get(outbox::show))
        .route("/console/outbox/{id}", get(outbox::event))
        .route("/console/outbox/{id}/requeue", post(outbox::requeue))
        .route("/console/outbox/{id}/drop", post(outbox::discard))
        .route("/console/contract", get(contract::show))
        .route("/console/settings", get(contract::settings))
        .route("/console/keys", get(contract::keys))
        .route("/console/sign-out", post(sign_in::sign_out))
        .layer(from_fn_with_state(Arc::clone(&console), gate::gate));
    let outside = Router::new()
        .route("/console/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/console/assets/{version}/{name}", get(assets::asset))
        .route("/console/", get(async || page::see("/console")))
        .route(
            "/console/{*rest}",
            get(async || page::refused(StatusCode::NOT_FOUND, "There is no such page.")),
        );
    inside
        .merge(outside)
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn(headers::guard))
        .with_state(console)
}
