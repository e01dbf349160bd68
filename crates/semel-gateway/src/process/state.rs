//! What a gateway and a worker of its own have in common: one store for as long as the process runs, and what a configuration makes of it.

use super::background::BackgroundTasks;
use super::publishing::Publishing;
use super::restart::Process;
use super::settling;
use super::start_error::StartError;
use super::tier::in_front_of;
use crate::admin::{Admin, ConsolePages, Liveness, Readiness};
use crate::config::{Config, port_of};
use crate::console::ReplacedConfig;
use crate::contract::Contract;
use crate::metrics::Metrics;
use crate::otlp::{ExportSource, Exporter, Names, Telemetry, Tracing};
use crate::reload::Reload;
use crate::store::{OpenedStore, Outbox};
use crate::tls::ServerTls;
use arc_swap::ArcSwap;
use semel::{Engine, EngineOptions};
use semel_events::outbox::Counts;
use semel_tower::{BodyBudget, IdempotencyLayer};
use semel_worker::{Rules, WebhookIntake};
use std::sync::Arc;

/// What outlives a reload: see [`reload`](crate::reload).
pub(crate) struct ProcessState {
    pub(crate) engine: Engine,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) readiness: Readiness,
    pub(crate) liveness: Liveness,
    outbox: Option<Outbox>,
    /// What publishers have done, one after the other.
    published: Arc<Counts>,
    /// What workers go by: those of the configuration in force.
    rules: Arc<ArcSwap<Rules>>,
    /// Traces requests. `None` without a collector.
    pub(crate) tracing: Option<Arc<Tracing>>,
    /// What is told of the configuration in force, once there is anything to tell it to.
    export_source: Option<Arc<ArcSwap<ExportSource>>>,
    /// What bodies take of the memory.
    pub(crate) body_memory: BodyBudget,
    reload: Reload,
    /// The file before the last reload, without secrets.
    pub(crate) replaced: Option<ReplacedConfig>,
}

/// What one configuration makes of doubt and webhooks, and of the operators' listener.
pub(crate) struct ReloadableParts {
    rules: Rules,
    webhooks: Arc<WebhookIntake>,
    tls: Option<Arc<ServerTls>>,
}

impl ProcessState {
    /// Opens the store.
    pub(crate) async fn open(config: &Config, reload: Reload) -> Result<Self, StartError> {
        let metrics = Metrics::new([]);
        metrics.know_routes(&config.routes);
        let OpenedStore { store, outbox, risk } =
            config.store.open(config.store_timeout, config.clock).await?;
        let metrics = metrics.with_risk(risk);
        let metrics = if outbox.is_some() { metrics.with_outbox() } else { metrics };
        let (store, metrics) = match &config.cache {
            Some(cache) => {
                let (store, counts) = in_front_of(store, cache)?;
                (store, metrics.with_cache(counts))
            }
            None => (store, metrics),
        };
        let metrics = Arc::new(if config.telemetry.is_some() { metrics.with_telemetry() } else { metrics });
        let options = EngineOptions {
            store_timeout: config.store_timeout,
            max_waiters: config.quota.waiters,
            max_waiters_per_tenant: config.quota.waiters_per_tenant,
            quotas: config.quota.keys.clone(),
            observer: Some(Arc::clone(&metrics) as _),
            keyring: config.encryption.clone(),
            ..EngineOptions::default()
        };
        let nobodys: Rules = Arc::new(|_| None);
        let engine = Engine::with_options(store, options);
        engine.seals_client_keys().await.map_err(StartError::ClientKeys)?;
        engine.check_keyring(config.encryption.as_ref()).await.map_err(StartError::Keyring)?;
        Ok(Self {
            engine,
            metrics,
            readiness: Readiness::default(),
            liveness: Liveness::default(),
            outbox,
            published: Arc::default(),
            rules: Arc::new(ArcSwap::from_pointee(nobodys)),
            tracing: None,
            export_source: None,
            body_memory: BodyBudget::new(config.body_memory),
            reload,
            replaced: None,
        })
    }

    /// What the configuration makes of doubt and webhooks, in the place of `earlier`.
    pub(crate) fn reloadable_parts(
        &self,
        config: &Config,
        earlier: Option<&ReloadableParts>,
    ) -> Result<ReloadableParts, StartError> {
        let rules = settling::rules(&Arc::new(config.routes.clone()))?;
        let mut webhooks = settling::webhooks(self.engine.clone(), &config.webhooks, &rules)?;
        if let Some(earlier) = earlier {
            webhooks = webhooks.counting_on(&earlier.webhooks);
        }
        let tls = config.admin.tls.clone().map(ServerTls::start_http1).transpose()?;
        Ok(ReloadableParts { rules, webhooks: Arc::new(webhooks), tls: tls.map(Arc::new) })
    }

    /// What is done beside the requests goes by this from now on.
    pub(crate) fn apply_config(&self, process: Process, config: &Config, parts: &ReloadableParts) {
        self.rules.store(Arc::new(Arc::clone(&parts.rules)));
        self.engine.set_keyring(config.encryption.clone());
        self.engine.set_quotas(config.quota.keys.clone());
        self.body_memory.set_limit(config.body_memory);
        if let Some(export_source) = &self.export_source {
            export_source.store(Arc::new(self.export_source_of(process, config, parts)));
        }
    }

    /// Begins to send traces and metrics to a collector, if the configuration names one.
    pub(crate) fn export(
        &mut self,
        process: Process,
        config: &Config,
        parts: &ReloadableParts,
    ) -> Result<Option<Exporter>, StartError> {
        let Some((telemetry, meters)) = config.telemetry.as_ref().zip(self.metrics.telemetry()) else {
            return Ok(None);
        };
        let export_source = Arc::new(ArcSwap::from_pointee(self.export_source_of(process, config, parts)));
        let (tracing, exporter) = Telemetry::new(telemetry, Arc::clone(&export_source), meters)?.start();
        (self.tracing, self.export_source) = (Some(Arc::new(tracing)), Some(export_source));
        Ok(Some(exporter))
    }

    fn export_source_of(&self, process: Process, config: &Config, parts: &ReloadableParts) -> ExportSource {
        ExportSource { names: names(config), snapshot: self.admin(process, config, parts).snapshot() }
    }

    /// What the process does beside the requests; none: others do.
    pub(crate) async fn background_tasks(
        &self,
        process: Process,
        config: &Config,
    ) -> Result<Option<BackgroundTasks>, StartError> {
        if !works(process, config) {
            return Ok(None);
        }
        let publishing = match &config.outbox {
            Some(told) => Some(Publishing::new(told, self.outbox.as_ref(), &self.published).await?),
            None => None,
        };
        let rules = Arc::clone(&self.rules);
        let rules: Rules = Arc::new(move |operation| (***rules.load())(operation));
        Ok(Some(BackgroundTasks {
            worker: settling::worker(self.engine.clone(), config, &rules),
            publishing,
        }))
    }

    /// The operators' side.
    pub(crate) fn admin(&self, process: Process, config: &Config, parts: &ReloadableParts) -> Admin {
        let routes = config.routes.clone();
        let publishes = config.outbox.is_some() && works(process, config);
        Admin {
            people: config.admin.people.clone(),
            tls: parts.tls.clone(),
            outbox: self.outbox.as_ref().map(|outbox| Arc::clone(&outbox.admin)),
            published: publishes.then(|| Arc::clone(&self.published)),
            webhooks: (!config.webhooks.is_empty()).then(|| Arc::clone(&parts.webhooks)),
            policies: Arc::new(move |operation| routes.policy_of(operation)),
            readiness: self.readiness.clone(),
            liveness: self.liveness.clone(),
            reload: Some(self.reload.clone()),
            format: config.profile.clone(),
            docs: config.docs.clone(),
            layer: IdempotencyLayer::with_engine(self.engine.clone())
                .profile(config.profile.clone())
                .docs(config.docs.clone()),
            console: config.console.enabled.then(|| ConsolePages {
                config: config.console.clone(),
                contract: Some(Contract::new(config)),
                shown_config: config.shown.clone(),
                replaced: self.replaced.clone(),
            }),
            ..Admin::new(self.engine.clone(), Arc::clone(&self.metrics))
        }
    }
}

/// What traces call the routes and the service.
fn names(config: &Config) -> Names {
    Names {
        routes: config.routes.clone(),
        host: config.upstream.host().unwrap_or_default().to_owned(),
        port: port_of(&config.upstream),
    }
}

/// Whether the process works beside the requests itself.
fn works(process: Process, config: &Config) -> bool {
    process == Process::Worker || config.worker.in_gateway
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn traces_name_the_port_that_the_service_is_reached_at() {
        for (upstream, port) in [("http://a", 80), ("https://a", 443), ("https://a:9443", 9443)] {
            let text = format!("upstream = \"{upstream}\"\n");
            let config = Config::from_toml(&text, Path::new("semel.toml")).unwrap();
            let names = names(&config);
            assert_eq!((names.host.as_str(), names.port), ("a", port));
        }
    }
}
