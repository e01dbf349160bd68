//! The whole of it, as a configuration says: store, layer, proxy and contract on one listener, the admin API on another.

use crate::admin::{self, Admin, Readiness};
use crate::config::Config;
use crate::contract::Contract;
use crate::gateway::{Gateway, Stopped};
use crate::instance::{Beside, Instance, listen};
use crate::open_files;
use crate::outbox::OutboxError;
use crate::proxy::{InvalidUpstream, Transport, Upstream};
use crate::route::Disguised;
use crate::server::PeerAddress;
use crate::settling::SettlingError;
use crate::store_url::OpenStoreError;
use crate::telemetry::{Exporter, Telemetry};
use crate::tls::{ClientTls, ServerTls, TlsError};
use http::uri::Scheme;
use semel_tower::IdempotencyLayer;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The service's address is none.
    #[error("the service cannot be reached there")]
    Upstream(#[from] InvalidUpstream),
    /// Certificates and keys cannot be used.
    #[error("{error}: {cure}", cure = error.cure())]
    Tls {
        /// What is wrong.
        #[from]
        error: TlsError,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    /// Doubt cannot be settled as the configuration says.
    #[error(transparent)]
    Settling(#[from] SettlingError),
    /// Events cannot be published as the configuration says.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// An address cannot be listened on.
    #[error(
        "cannot listen on {address} ({error}): choose another address, such as 127.0.0.1:0 for any free port"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
}

/// A gateway that listens, and is ready to answer.
pub struct Running {
    gateway: Gateway,
    listener: TcpListener,
    beside: Option<Beside>,
    exporter: Option<Exporter>,
    admin: Admin,
    admin_listener: TcpListener,
    address: SocketAddr,
    admin_address: SocketAddr,
}

impl Running {
    /// Opens the store and takes both addresses.
    ///
    /// # Errors
    /// What is in the way, before anybody is answered.
    pub async fn start(config: Config) -> Result<Self, StartError> {
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
            .problems(config.docs.clone(), config.profile);
        let contract = Contract::new(&config);
        for words in config.scope.words() {
            tracing::info!("{words}");
        }
        if !config.store.is_durable() {
            tracing::warn!("the store is in memory: what was done is forgotten when the gateway ends");
        }
        let instance = Instance::open(&config).await?;
        let beside = if config.worker.in_gateway { Some(instance.beside(&config).await?) } else { None };
        let admin = instance.admin(&config, beside.as_ref())?;
        let telemetry = instance.telemetry(&config, &admin);
        let Instance { engine, routes, .. } = instance;
        let selecting = Arc::clone(&routes);
        let layer = config
            .scope
            .apply(IdempotencyLayer::over(engine))
            .protect(move |parts| selecting.select(parts))
            .key_rules(config.key_rules)
            .profile(config.profile)
            .docs(config.docs);
        let (scope, disguised) = (config.scope, routes);
        open_files::raise_limit(config.limits.connections);
        let tls = config.tls.map(ServerTls::start).transpose()?;
        let gateway = Gateway::new(&layer, upstream, config.limits)
            .contract(move |method, headers| contract.respond(method, headers))
            .check(move |PeerAddress(peer), parts| {
                scope.drop_untrusted(peer.ip(), &mut parts.headers);
                disguised.disguised(parts).map(Disguised::into_response)
            });
        let gateway = match tls {
            Some(tls) => gateway.over_tls(tls),
            None => gateway,
        };
        let (listener, address) = listen(config.listen).await?;
        let (admin_listener, admin_address) = listen(config.admin.listen).await?;
        let (tracing, exporter) = telemetry.map(Telemetry::start).unzip();
        let gateway = gateway.traced(tracing);
        Ok(Self { gateway, listener, beside, exporter, admin, admin_listener, address, admin_address })
    }

    /// Where clients are served.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin API is.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// Serves until `stop`, then lets what is under way end: see [`Gateway::run`]. The admin API answers until then, and says that
    /// the gateway is not ready any more.
    pub async fn serve(self, stop: impl Future<Output = ()>, force: impl Future<Output = ()>) -> Stopped {
        let readiness: Readiness = self.admin.readiness.clone();
        let (ended, end) = oneshot::channel::<()>();
        let (rest, resting) = oneshot::channel::<()>();
        let working = self.beside.map(|beside| tokio::spawn(beside.run(async { drop(resting.await) })));
        let serving = admin::serve(self.admin_listener, self.admin, async { drop(end.await) });
        let administering = tokio::spawn(serving_to_the_end(serving));
        let stop = async {
            stop.await;
            readiness.stopping();
        };
        let stopped = self.gateway.run(self.listener, stop, force).await;
        drop(rest);
        match (working, stopped) {
            // Each question and each event that is out has its own deadline, and soon.
            (Some(working), Stopped::Drained) => drop(working.await),
            (Some(working), _) => working.abort(),
            (None, _) => {}
        }
        let _gone = ended.send(());
        let _ended = administering.await;
        if let Some(exporter) = self.exporter {
            exporter.end(stopped != Stopped::Drained).await;
        }
        stopped
    }
}

pub(crate) async fn serving_to_the_end(serving: impl Future<Output = std::io::Result<()>>) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the admin API has ended");
    }
}
