//! The whole of it, as a configuration says: store, layer, proxy and contract on one listener, the admin API on another.

use super::bind::listen;
use super::build::gateway_of;
use super::live::{LiveGateway, Stopped};
use super::orphans;
use super::reloader::Reloader;
use super::restart::Process;
use super::serving_to_the_end;
use super::start_error::StartError;
use super::state::ProcessState;
use crate::admin::{self, LiveAdmin};
use crate::config::Config;
use crate::listener::core_threads::CoreThreads;
use crate::otlp::Exporter;
use crate::reload::Reload;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A gateway that listens, and is ready to answer.
pub struct GatewayProcess {
    live_gateway: Arc<LiveGateway>,
    listener: TcpListener,
    exporter: Option<Exporter>,
    live_admin: LiveAdmin,
    admin_listener: TcpListener,
    address: SocketAddr,
    admin_address: SocketAddr,
    reloader: Reloader,
    reload: Reload,
    core_threads: CoreThreads,
}

impl GatewayProcess {
    /// Opens the store and takes both addresses.
    ///
    /// # Errors
    /// Checks what could fail, before any request is served.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        for words in config.scope.words() {
            tracing::info!("{words}");
        }
        if !config.store.is_durable() {
            tracing::warn!("the store is in memory: a restart forgets every key");
        }
        let (reload, asked) = Reload::channel();
        let mut state = ProcessState::open(&config, reload.clone()).await?;
        let keyring = config.encryption.as_ref();
        let secret = state.engine.check_fingerprint_secret(keyring).await;
        secret.map_err(StartError::FingerprintSecret)?;
        let operations = orphans::check(&state.engine, &config).await?;
        let parts = state.reloadable_parts(&config, None)?;
        let background_tasks = state.background_tasks(Process::Gateway, &config).await?;
        let exporter = state.export(Process::Gateway, &config, &parts)?;
        let live_gateway = LiveGateway::new(gateway_of(&state, &config)?);
        let live_admin = LiveAdmin::of(state.admin(Process::Gateway, &config, &parts));
        let core_threads = CoreThreads::start().map_err(StartError::CoreThreads)?;
        state.liveness.watch(core_threads.signs_of_life());
        let (listener, address) = listen(config.listen).await?;
        let (admin_listener, admin_address) = listen(config.admin.listen).await?;
        state.apply_config(Process::Gateway, &config, &parts);
        operations.keep(&state.engine).await;
        let reloader = Reloader {
            state,
            config,
            parts,
            first_tasks: background_tasks,
            live_gateway: Some(Arc::clone(&live_gateway)),
            live_admin: Some((live_admin.clone(), admin_address)),
            file: None,
            asked,
        };
        Ok(Self {
            live_gateway,
            listener,
            exporter,
            live_admin,
            admin_listener,
            address,
            admin_address,
            reloader,
            reload,
            core_threads,
        })
    }

    /// The file that a [`reload`](Self::reload) reads.
    #[must_use]
    pub fn reading(mut self, file: PathBuf) -> Self {
        self.reloader.file = Some(file);
        self
    }

    /// Triggers a reload.
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

    /// Serves until `stop`, then lets what is under way end: see [`Gateway::run`](crate::Gateway::run). The admin API answers until then, and says that
    /// the gateway is not ready any more. What is done beside the requests ends after them; `force` ends the waiting for that too.
    pub async fn serve(self, stop: impl Future<Output = ()>, force: impl Future<Output = ()>) -> Stopped {
        let readiness = self.reloader.state.readiness.clone();
        let (ended, end) = oneshot::channel::<()>();
        let (rest, resting) = oneshot::channel::<()>();
        let mut working = tokio::spawn(self.reloader.run(resting));
        let serving = admin::serve_at(self.admin_listener, self.live_admin, async { drop(end.await) });
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
        let stopped = self.live_gateway.run(self.listener, &self.core_threads, stop, force.as_mut()).await;
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
                tracing::warn!("stopped before background tasks had ended");
                Stopped::CutOff { operations: 0 }
            }
            cut_off @ Stopped::CutOff { .. } => cut_off,
        }
    }
}
