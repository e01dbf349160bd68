//! What a gateway and a worker of its own have in common: one configuration, one store, and what is counted and told of it.

use crate::admin::Admin;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::outbox::{Outbox, Publishing};
use crate::route::Routes;
use crate::running::StartError;
use crate::settling;
use crate::store_url::OpenedStore;
use crate::tls::ServerTls;
use semel::{Engine, EngineOptions};
use semel_relay::{Rules, Worker};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

/// One process of the configuration.
pub(crate) struct Instance {
    pub(crate) engine: Engine,
    pub(crate) routes: Arc<Routes>,
    metrics: Arc<Metrics>,
    rules: Rules,
    outbox: Option<Outbox>,
}

/// What is done beside the requests.
pub(crate) struct Beside {
    worker: Worker,
    publishing: Option<Publishing>,
}

impl Beside {
    /// Works until `stop`, then waits for the questions and the events that are out, each within its deadline.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, mut stopped) = watch::channel(());
        let publish = async {
            if let Some(publishing) = self.publishing {
                // Nothing is ever sent: it ends when the sender is dropped.
                publishing.run(async move { drop(stopped.changed().await) }).await;
            }
        };
        let stop = async {
            stop.await;
            drop(stopping);
        };
        tokio::join!(self.worker.run(stop), publish);
    }
}

impl Instance {
    /// Opens the store.
    pub(crate) async fn open(config: &Config) -> Result<Self, StartError> {
        let routes = Arc::new(config.routes.clone());
        let rules = settling::rules(&routes)?;
        let names = routes.routes().iter().map(|route| route.operation.as_str());
        let metrics = Metrics::new(names);
        let OpenedStore { store, outbox } = config.store.open(config.store_timeout).await?;
        let metrics = Arc::new(if outbox.is_some() { metrics.with_outbox() } else { metrics });
        let options = EngineOptions {
            store_timeout: config.store_timeout,
            observer: Some(Arc::clone(&metrics) as _),
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(store, options);
        Ok(Self { engine, routes, metrics, rules, outbox })
    }

    /// What is done beside the requests.
    pub(crate) async fn beside(&self, config: &Config) -> Result<Beside, StartError> {
        let publishing = match &config.outbox {
            Some(told) => Some(Publishing::new(told, self.outbox.as_ref()).await?),
            None => None,
        };
        Ok(Beside { worker: settling::worker(self.engine.clone(), config, &self.rules), publishing })
    }

    /// The operators' side, of a process that does this beside the requests.
    pub(crate) fn admin(&self, config: &Config, beside: Option<&Beside>) -> Result<Admin, StartError> {
        let webhooks = settling::webhooks(self.engine.clone(), &config.webhooks, &self.rules)?;
        let routes = Arc::clone(&self.routes);
        Ok(Admin {
            token: config.admin.token.clone(),
            tls: config.admin.tls.clone().map(ServerTls::start_http1).transpose()?.map(Arc::new),
            outbox: self.outbox.as_ref().map(|outbox| Arc::clone(&outbox.desk)),
            published: beside
                .and_then(|beside| beside.publishing.as_ref())
                .map(|publishing| Arc::clone(&publishing.counts)),
            webhooks: (!config.webhooks.is_empty()).then(|| Arc::new(webhooks)),
            policies: Arc::new(move |operation| routes.policy_of(operation)),
            ..Admin::new(self.engine.clone(), Arc::clone(&self.metrics))
        })
    }
}

/// How many connections may wait to be accepted. The usual 128 are too few for a crowd: who finds no room tries again a second later.
const QUEUE: u32 = 4096;

/// Takes an address.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let unheard = |error| StartError::Listen { address, error };
    let listener = bind(address).map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;
    Ok((listener, address))
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart does not wait for the last connections of the process before it.
    socket.set_reuseaddr(!cfg!(windows))?;
    socket.bind(address)?;
    socket.listen(QUEUE)
}
