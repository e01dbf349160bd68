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
pub struct Working {
    reloader: Reloader,
    reload: Reload,
    exporter: Option<Exporter>,
    listener: Option<TcpListener>,
}

impl Working {
    /// Opens the store, and takes the address of the admin API if there is to be one.
    ///
    /// # Errors
    /// What is in the way, before anything is done.
    pub async fn start(config: Config, admin_listen: Option<SocketAddr>) -> Result<Self, StartError> {
        let (reload, asked) = Reload::channel();
        let mut instance = ProcessState::open(&config, reload.clone()).await?;
        let parts = instance.reloadable_parts(&config, None)?;
        let first_tasks = instance.background_tasks(Process::Worker, &config).await?;
        let (listener, admin_seat) = match admin_listen {
            None => (None, None),
            Some(address) => {
                let (listener, address) = listen(address).await?;
                let admin_seat = LiveAdmin::of(instance.admin(Process::Worker, &config, &parts));
                (Some(listener), Some((admin_seat, address)))
            }
        };
        // There are no requests to trace here, only numbers.
        let exporter = instance.export(Process::Worker, &config, &parts)?;
        instance.apply_config(Process::Worker, &config, &parts);
        let reloader =
            Reloader { instance, config, parts, first_tasks, seat: None, admin_seat, file: None, asked };
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
        self.reloader.admin_seat.as_ref().map(|(_, address)| *address)
    }

    /// Works until `stop`, then waits for the questions that are out. The admin API answers until then, and says that the worker is
    /// not ready any more.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tracing::info!(
            store = %self.reloader.config.store,
            "working: leases are watched, doubt is settled, windows are closed"
        );
        let readiness = self.reloader.instance.readiness.clone();
        let (ended, end) = oneshot::channel::<()>();
        let admin_seat = self.reloader.admin_seat.as_ref().map(|(admin_seat, _)| admin_seat.clone());
        let administering = self.listener.zip(admin_seat).map(|(listener, admin_seat)| {
            let serving = admin::serve_at(listener, admin_seat, async { drop(end.await) });
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
