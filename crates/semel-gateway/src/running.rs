//! The whole of it, as a configuration says: store, layer, proxy and contract on one listener, the admin API on another.

use crate::admin::{self, AdminSeat};
use crate::config::Config;
use crate::contract::Contract;
use crate::external_host::external_host;
use crate::gateway::{Gateway, Seat, Stopped};
use crate::instance::{Instance, listen};
use crate::lanes::Lanes;
use crate::open_files;
use crate::outbox::OutboxError;
use crate::proxy::{InvalidUpstream, Transport, Upstream};
use crate::reload::{Process, Reload, Reloader};
use crate::route::Disguised;
use crate::server::PeerAddress;
use crate::settling::SettlingError;
use crate::store_url::OpenStoreError;
use crate::telemetry::Exporter;
use crate::tls::{ClientTls, ServerTls, TlsError};
use http::uri::Scheme;
use semel_tower::IdempotencyLayer;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    /// The secret that fingerprints are keyed with cannot be had.
    #[error("requests cannot be compared: {0}")]
    FingerprintSecret(semel::StoreError),
    /// Whether and how the store's client keys are sealed cannot be found out, so that no key could be looked up.
    #[error("client keys cannot be looked up in the store: {0}")]
    ClientKeys(semel::StoreError),
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
    /// There are no threads to serve connections.
    #[error(
        "the threads that serve connections cannot be started ({0}): look at the limits on processes and memory"
    )]
    Lanes(std::io::Error),
}

/// A gateway that listens, and is ready to answer.
pub struct Running {
    seat: Arc<Seat>,
    listener: TcpListener,
    exporter: Option<Exporter>,
    admin_seat: AdminSeat,
    admin_listener: TcpListener,
    address: SocketAddr,
    admin_address: SocketAddr,
    reloader: Reloader,
    reload: Reload,
    lanes: Lanes,
}

impl Running {
    /// Opens the store and takes both addresses.
    ///
    /// # Errors
    /// What is in the way, before anybody is answered.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        for words in config.scope.words() {
            tracing::info!("{words}");
        }
        if !config.store.is_durable() {
            tracing::warn!("the store is in memory: what was done is forgotten when the gateway ends");
        }
        let (reload, asked) = Reload::channel();
        let mut instance = Instance::open(&config, reload.clone()).await?;
        let keyring = config.encryption.as_ref();
        let secret = instance.engine.check_fingerprint_secret(keyring).await;
        secret.map_err(StartError::FingerprintSecret)?;
        let office = instance.office(&config, None)?;
        let beside = instance.beside(Process::Gateway, &config).await?;
        let exporter = instance.export(Process::Gateway, &config, &office)?;
        let seat = Seat::of(gateway_of(&instance, &config)?);
        let admin_seat = AdminSeat::of(instance.admin(Process::Gateway, &config, &office));
        let lanes = Lanes::start().map_err(StartError::Lanes)?;
        instance.liveness.watch(lanes.pulse());
        let (listener, address) = listen(config.listen).await?;
        let (admin_listener, admin_address) = listen(config.admin.listen).await?;
        instance.go_by(Process::Gateway, &config, &office);
        let reloader = Reloader {
            instance,
            config,
            office,
            first_shift: beside,
            seat: Some(Arc::clone(&seat)),
            admin_seat: Some((admin_seat.clone(), admin_address)),
            file: None,
            asked,
        };
        Ok(Self {
            seat,
            listener,
            exporter,
            admin_seat,
            admin_listener,
            address,
            admin_address,
            reloader,
            reload,
            lanes,
        })
    }

    /// The file that a [`reload`](Self::reload) reads.
    #[must_use]
    pub fn reading(mut self, file: PathBuf) -> Self {
        self.reloader.file = Some(file);
        self
    }

    /// Has the configuration read anew.
    #[must_use]
    pub fn reload(&self) -> Reload {
        self.reload.clone()
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
    /// the gateway is not ready any more. What is done beside the requests ends after them; `force` ends the waiting for that too.
    pub async fn serve(self, stop: impl Future<Output = ()>, force: impl Future<Output = ()>) -> Stopped {
        let readiness = self.reloader.instance.readiness.clone();
        let (ended, end) = oneshot::channel::<()>();
        let (rest, resting) = oneshot::channel::<()>();
        let mut working = tokio::spawn(self.reloader.run(resting));
        let serving = admin::serve_at(self.admin_listener, self.admin_seat, async { drop(end.await) });
        let mut administering = tokio::spawn(serving_to_the_end(serving));
        let stop = async {
            stop.await;
            readiness.stopping();
        };
        let is_forced = AtomicBool::new(false);
        let mut force = pin!(async {
            force.await;
            is_forced.store(true, Relaxed);
        });
        let stopped = self.seat.run(self.listener, &self.lanes, stop, force.as_mut()).await;
        drop(rest);
        let mut exporter = self.exporter;
        let ending = async {
            match stopped {
                Stopped::Drained => drop((&mut working).await),
                Stopped::CutOff { .. } => working.abort(),
            }
            let _gone = ended.send(());
            let _ended = (&mut administering).await;
            if let Some(exporter) = exporter.take() {
                exporter.end(stopped != Stopped::Drained).await;
            }
        };
        let force = async {
            if !is_forced.load(Relaxed) {
                force.await;
            }
        };
        tokio::select! {
            biased;
            () = force => {}
            () = ending => return stopped,
        }
        working.abort();
        administering.abort();
        if let Some(exporter) = exporter {
            exporter.end(true).await;
        }
        match stopped {
            Stopped::Drained => {
                tracing::warn!("stopped before what is done beside the requests had ended");
                Stopped::CutOff { operations: 0 }
            }
            cut_off @ Stopped::CutOff { .. } => cut_off,
        }
    }
}

/// What requests meet, as a configuration says.
pub(crate) fn gateway_of(instance: &Instance, config: &Config) -> Result<Gateway, StartError> {
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
    let contract = Contract::new(config);
    let routes = Arc::new(config.routes.clone());
    let selecting = Arc::clone(&routes);
    let asked = config.scope.clone();
    let layer = config
        .scope
        .apply(IdempotencyLayer::over(instance.engine.clone()))?
        .protect(move |parts| selecting.select(parts))
        .host_from(move |parts| external_host(&asked, parts))
        .key_rules(config.key_rules)
        .profile(config.profile)
        .docs(config.docs.clone())
        .body_memory(instance.body_memory.clone());
    let scope = config.scope.clone();
    let forwarding = config.scope.clone();
    open_files::raise_limit(&config.limits);
    let tls = config.tls.clone().map(ServerTls::start).transpose()?;
    let gateway = Gateway::new(&layer, upstream, config.limits.clone())
        .tenant_headers(config.scope.headers().cloned())
        .contract(move |method, headers| contract.respond(method, headers))
        .trusting(move |peer| forwarding.trusts(peer))
        .check(move |PeerAddress(peer), parts| {
            scope.drop_untrusted(peer.ip(), &mut parts.headers);
            routes.disguised(parts).map(Disguised::into_response)
        })
        .traced(instance.tracing.clone());
    Ok(match tls {
        Some(tls) => gateway.over_tls(tls),
        None => gateway,
    })
}

pub(crate) async fn serving_to_the_end(serving: impl Future<Output = std::io::Result<()>>) {
    if let Err(error) = serving.await {
        tracing::error!(%error, "the admin API has ended");
    }
}
