//! What a gateway and a worker of its own have in common: one configuration, one store, and what is counted and told of it.

use crate::admin::Admin;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::route::Routes;
use crate::running::StartError;
use crate::settling;
use semel::{Engine, EngineOptions};
use semel_relay::{Rules, Worker};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

/// One process of the configuration.
pub(crate) struct Instance {
    pub(crate) engine: Engine,
    pub(crate) routes: Arc<Routes>,
    metrics: Arc<Metrics>,
    rules: Rules,
}

impl Instance {
    /// Opens the store.
    pub(crate) async fn open(config: &Config) -> Result<Self, StartError> {
        let routes = Arc::new(config.routes.clone());
        let rules = settling::rules(&routes)?;
        let names = routes.routes().iter().map(|route| route.operation.as_str());
        let metrics = Arc::new(Metrics::new(names));
        let store = config.store.open(config.store_timeout).await?;
        let options = EngineOptions {
            store_timeout: config.store_timeout,
            observer: Some(Arc::clone(&metrics) as _),
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(store, options);
        Ok(Self { engine, routes, metrics, rules })
    }

    /// What is done beside the requests.
    pub(crate) fn worker(&self, config: &Config) -> Worker {
        settling::worker(self.engine.clone(), config, &self.rules)
    }

    /// The operators' side.
    pub(crate) fn admin(&self, config: &Config) -> Result<Admin, StartError> {
        let webhooks = settling::webhooks(self.engine.clone(), &config.webhooks, &self.rules)?;
        let routes = Arc::clone(&self.routes);
        Ok(Admin {
            token: config.admin.token.clone(),
            webhooks: (!config.webhooks.is_empty()).then(|| Arc::new(webhooks)),
            policies: Arc::new(move |operation| routes.policy_of(operation)),
            ..Admin::new(self.engine.clone(), Arc::clone(&self.metrics))
        })
    }
}

/// Takes an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let unheard = |error| StartError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;
    Ok((listener, address))
}
