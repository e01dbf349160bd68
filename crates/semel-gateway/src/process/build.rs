//! What requests meet, as a configuration says.

use super::live::Gateway;
use super::open_files;
use super::start_error::StartError;
use super::state::ProcessState;
use crate::config::Config;
use crate::contract::Contract;
use crate::layers::CorsRules;
use crate::tenant::external_host;
use crate::tls::{ClientTls, ServerTls};
use crate::upstream::{Transport, Upstream};
use http::uri::Scheme;
use semel_tower::IdempotencyLayer;
use std::sync::Arc;

/// What requests meet, as a configuration says.
pub(crate) fn gateway_of(state: &ProcessState, config: &Config) -> Result<Gateway, StartError> {
    let trusted = config.scope.clone();
    let transport = Transport {
        protocol: config.upstream_protocol,
        tls: match config.upstream.scheme() == Some(&Scheme::HTTPS) {
            true => Some(Arc::new(ClientTls::start(config.upstream_tls.clone())?)),
            false => None,
        },
    };
    let upstream = Upstream::over(&config.upstream, &config.limits, transport)?
        .trusting(move |peer| trusted.trusts(peer))
        .problems(config.docs.clone(), config.profile.clone());
    let routes = Arc::new(config.routes.clone());
    let selecting = Arc::clone(&routes);
    let asked = config.scope.clone();
    let layer = config
        .scope
        .apply(IdempotencyLayer::with_engine(state.engine.clone()))?
        .protect(move |parts| selecting.select(parts))
        .host_from(move |parts| external_host(&asked, parts))
        .key_rules(config.key_rules)
        .profile(config.profile.clone())
        .docs(config.docs.clone())
        .body_budget(state.body_memory.clone());
    open_files::raise_limit(&config.limits);
    let tls = config.tls.clone().map(ServerTls::start).transpose()?;
    let gateway = Gateway::new(layer, upstream, config.limits.clone())
        .contract(Contract::new(config))
        .tenants(config.scope.clone())
        .routes(routes)
        .cors(CorsRules::of(config))
        .format(config.profile.clone())
        .traced(state.tracing.clone());
    Ok(match tls {
        Some(tls) => gateway.over_tls(tls),
        None => gateway,
    })
}
