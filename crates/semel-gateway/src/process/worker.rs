//! The work beside the requests alone, without a gateway: `semel worker`.

use super::bind::listen;
use super::reloader::Reloader;
use super::restart::Process;
use super::serving_to_the_end;
use super::start_error::StartError;
use super::state::ProcessState;
use crate::admin::{self, LiveAdmin};
use crate::config::Config;
use crate::otlp::Exporter;
use crate::reload::Reload;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A worker that is ready to work.
pub struct WorkerProcess {
    reloader: Reloader,
    reload: Reload,
    exporter: Option<Exporter>,
    listener: Option<TcpListener>,
}

impl WorkerProcess {
    /// Opens the store, and takes the address of the admin API if there is to be one.
    ///
    /// # Errors
    /// What is in the way, before anything is done.
    pub async fn start(config: Config, admin_listen: Option<SocketAddr>) -> Result<Self, StartError> {
        let (reload, asked) = Reload::channel();
        let mut state = ProcessState::open(&config, reload.clone()).await?;
        let parts = state.reloadable_parts(&config, None)?;
        let first_tasks = state.background_tasks(Process::Worker, &config).await?;
        let (listener, live_admin) = match admin_listen {
            None => (None, None),
            Some(address) => {
                let (listener, address) = listen(address).await?;
                let live_admin = LiveAdmin::of(state.admin(Process::Worker, &config, &parts));
                (Some(listener), Some((live_admin, address)))
            }
        };
        // There are no requests to trace here, only numbers.
        let exporter = state.export(Process::Worker, &config, &parts)?;
        state.apply_config(Process::Worker, &config, &parts);
        let reloader =
            Reloader { state, config, parts, first_tasks, live_gateway: None, live_admin, file: None, asked };
        Ok(Self { reloader, reload, exporter, listener })
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

    /// Where the admin API is, if there is one.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.reloader.live_admin.as_ref().map(|(_, address)| *address)
    }

    /// Works until `stop`, then waits for the questions that are out. The admin API answers until then, and says that the worker is
    /// not ready any more.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tracing::info!(
            store = %self.reloader.config.store,
            "worker started: watching leases, settling doubt, purging expired records"
        );
        let readiness = self.reloader.state.readiness.clone();
        let (ended, end) = oneshot::channel::<()>();
        let live_admin = self.reloader.live_admin.as_ref().map(|(live_admin, _)| live_admin.clone());
        let administering = self.listener.zip(live_admin).map(|(listener, live_admin)| {
            let serving = admin::serve_at(listener, live_admin, async { drop(end.await) });
            tokio::spawn(serving_to_the_end(serving))
        });
        let (rest, resting) = oneshot::channel();
        let stop = async {
            stop.await;
            readiness.stopping();
            drop(rest);
        };
        tokio::join!(self.reloader.run(resting), stop);
        drop(ended);
        if let Some(administering) = administering {
            let _ended = administering.await;
        }
        if let Some(exporter) = self.exporter {
            exporter.end(false).await;
        }
    }
}
