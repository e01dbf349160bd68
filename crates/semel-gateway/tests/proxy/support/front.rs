//! The gateway under test, on a socket of its own.

use super::store::SlowStore;
use super::{Answer, Ask, Client, Service};
use semel::{Engine, Filter, MemoryStore, Policy, Record, Store as _};
use semel_gateway::contract::Contract;
use semel_gateway::tenant::ScopeConfig;
use semel_gateway::tls::{ServerTls, ServerTlsFiles};
use semel_gateway::upstream::{Transport, Upstream, UpstreamProtocol};
use semel_gateway::{Config, Gateway, Limits, Stopped};
use semel_tower::{IdempotencyLayer, KeyRequirement, Protection};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// How a gateway is to be built.
pub(crate) struct Setting {
    pub(crate) limits: Limits,
    pub(crate) protection: Protection,
    pub(crate) base: &'static str,
    /// Reservations wait until this says so.
    pub(crate) slow: Option<watch::Receiver<bool>>,
    pub(crate) transport: Transport,
    pub(crate) tls: Option<ServerTlsFiles>,
    /// Whether this machine is believed to forward for others.
    pub(crate) trusts_loopback: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            protection: Protection { key: KeyRequirement::Optional, ..Protection::default() },
            base: "",
            slow: None,
            transport: Transport::default(),
            tls: None,
            trusts_loopback: true,
        }
    }
}

impl Setting {
    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn protection(mut self, change: impl FnOnce(&mut Protection)) -> Self {
        change(&mut self.protection);
        self
    }

    /// The service may take this long.
    pub(crate) fn timeout(self, timeout: Duration) -> Self {
        self.protection(|protection| {
            protection.timeout = timeout;
            protection.policy = Arc::new(Policy { lease: Duration::from_secs(60), ..Policy::default() });
        })
    }

    /// The service speaks HTTP/2.
    pub(crate) fn http2(mut self) -> Self {
        self.transport.protocol = UpstreamProtocol::Http2;
        self
    }

    pub(crate) async fn before(self, service: &Service) -> Front {
        self.before_port(service.port).await
    }

    pub(crate) async fn before_port(self, port: u16) -> Front {
        let scheme = if self.transport.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://127.0.0.1:{port}{}", self.base).parse().unwrap();
        let store = MemoryStore::new();
        let engine = match self.slow {
            Some(slow) => Engine::new(SlowStore(store.clone(), slow)),
            None => Engine::new(store.clone()),
        };
        let layer = IdempotencyLayer::with_engine(engine.clone()).protect_writes(self.protection).unwrap();
        let upstream = Upstream::over(&url, &self.limits, self.transport).unwrap();
        let documented = format!("upstream = \"http://127.0.0.1:{port}\"\n");
        let documented = Config::from_toml(&documented, Path::new("semel.toml")).unwrap();
        let gateway = Gateway::new(layer, upstream, self.limits).contract(Contract::new(&documented));
        let gateway = if self.trusts_loopback {
            gateway
        } else {
            gateway.tenants(ScopeConfig { trusted_peers: Arc::new([]), ..ScopeConfig::default() })
        };
        let gateway = match self.tls {
            Some(files) => gateway.over_tls(ServerTls::start(files).unwrap()),
            None => gateway,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = oneshot::channel();
        let (force, forcing) = oneshot::channel();
        let running = tokio::spawn(gateway.run(listener, async { drop(stopping.await) }, async {
            if forcing.await.is_err() {
                std::future::pending::<()>().await;
            }
        }));
        Front { address, store, engine, stop: Some(stop), force: Some(force), running }
    }
}

/// A running gateway.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    pub(crate) store: MemoryStore,
    pub(crate) engine: Engine,
    stop: Option<oneshot::Sender<()>>,
    force: Option<oneshot::Sender<()>>,
    running: JoinHandle<io::Result<Stopped>>,
}

impl Front {
    /// With defaults.
    pub(crate) async fn before(service: &Service) -> Self {
        Setting::default().before(service).await
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.address).await
    }

    /// Sends a request over a connection of its own.
    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        self.connect().await.send(ask).await
    }

    pub(crate) async fn records(&self) -> Vec<Record> {
        self.store.list(Filter::default(), None, 100).await.unwrap().records
    }

    /// The one record that there is.
    pub(crate) async fn record(&self) -> Record {
        let mut records = self.records().await;
        assert_eq!(records.len(), 1);
        records.remove(0)
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn force(&mut self) {
        self.force.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn stopped(self) -> Stopped {
        tokio::time::timeout(Duration::from_secs(20), self.running).await.unwrap().unwrap().unwrap()
    }
}
