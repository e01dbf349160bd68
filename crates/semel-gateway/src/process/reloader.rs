//! Puts one configuration in the place of another.
//!
//! # How it works, and where a new section goes
//!
//! What lives as long as the process is [`ProcessState`]: the store, the engine on it, what was counted. Everything else is made from the
//! configuration by functions that a start and a reload share: [`gateway_of`](super::build::gateway_of) (what requests meet),
//! [`ProcessState::reloadable_parts`] (the admin API, and the rules of doubt) and [`ProcessState::background_tasks`] (workers and publishers). A reload makes all of it
//! beside what is in force; only when nothing is in the way does it put the new in the place of the old, and that cannot fail. Requests that
//! have begun end under the configuration that they began with.
//!
//! So a new section of the file needs one line, in [`restart::changed`], where it does not compile before it is decided:
//!
//! - used in one of the three functions alone: `section: _`, and it is reloaded;
//! - used once at the start (an address, a store): compared there, and a change of it is refused with "needs a restart";
//! - with a state that a reload must not forget (a counter, a quota, a cache): the state is a field of [`ProcessState`], the section's numbers are
//!   handed to it by the function that uses it.

use super::background::{BackgroundSupervisor, BackgroundTasks};
use super::build::gateway_of;
use super::live::LiveGateway;
use super::orphans;
use super::restart::{self, Process};
use super::start_error::StartError;
use super::state::{ProcessState, ReloadableParts};
use crate::admin::LiveAdmin;
use crate::config::Config;
use crate::console::ReplacedConfig;
use crate::reload::{ReloadError, ReloadRequest, Reloaded};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Replaces the configuration in force, one reload after the other.
pub(crate) struct Reloader {
    pub(crate) state: ProcessState,
    /// In force.
    pub(crate) config: Config,
    pub(crate) parts: ReloadableParts,
    /// Works once this runs.
    pub(crate) first_tasks: Option<BackgroundTasks>,
    /// Where clients are answered; none in a worker.
    pub(crate) live_gateway: Option<Arc<LiveGateway>>,
    /// Where operators are answered; none in a worker that listens nowhere.
    pub(crate) live_admin: Option<(LiveAdmin, SocketAddr)>,
    /// `None` without a config file: there is nothing to reload.
    pub(crate) file: Option<PathBuf>,
    pub(crate) asked: mpsc::Receiver<ReloadRequest>,
}

impl Reloader {
    /// Reloads whenever it is asked to, until `stop`; then waits for what is done beside the requests to end.
    pub(crate) async fn run(mut self, stop: oneshot::Receiver<()>) {
        let mut background = BackgroundSupervisor::default();
        background.change(self.first_tasks.take());
        let mut stop = std::pin::pin!(stop);
        loop {
            let asked = tokio::select! {
                _ = &mut stop => break,
                asked = self.asked.recv() => asked,
            };
            match asked {
                Some(asked) => {
                    // Whether or not somebody still wants to know.
                    let _nobody = asked.send(self.reload(&mut background).await);
                }
                None => {
                    let _stopped = stop.await;
                    break;
                }
            }
        }
        self.asked.close();
        background.end().await;
    }

    async fn reload(&mut self, background: &mut BackgroundSupervisor) -> Result<Reloaded, ReloadError> {
        let result = self.try_reload(background).await;
        self.state.metrics.count_reload(result.is_ok());
        match &result {
            Ok(reloaded) => {
                tracing::info!(
                    file = reloaded.file,
                    operations = reloaded.operations.len(),
                    "configuration reloaded"
                );
            }
            Err(error) => {
                tracing::error!(%error, "reload refused: the current configuration stays in force");
            }
        }
        result
    }

    async fn try_reload(&mut self, background: &mut BackgroundSupervisor) -> Result<Reloaded, ReloadError> {
        let file = self.file.clone().ok_or(ReloadError::NoFile)?;
        let mut new = read(file.clone()).await?;
        new.scope.keep_fetched_keys(&self.config.scope);
        let process = if self.live_gateway.is_some() { Process::Gateway } else { Process::Worker };
        let settings = restart::changed(process, &self.config, &new);
        if !settings.is_empty() {
            return Err(ReloadError::NeedsRestart { settings });
        }
        if let Some((_, address)) = &self.live_admin
            && new.admin.people.is_empty()
            && !address.ip().is_loopback()
        {
            return Err(ReloadError::Open(*address));
        }
        // Everything that can fail comes first, and leaves nothing behind if it does.
        let refused = |error| ReloadError::Start(Arc::new(error));
        if self.live_gateway.is_some() {
            let secret = self.state.engine.check_fingerprint_secret(new.encryption.as_ref()).await;
            secret.map_err(StartError::FingerprintSecret).map_err(refused)?;
        }
        let operations = match self.live_gateway {
            Some(_) => {
                let checked = orphans::check(&self.state.engine, &new).await;
                Some(checked.map_err(StartError::Operations).map_err(refused)?)
            }
            None => None,
        };
        let keyring = new.encryption.as_ref();
        let checked = self.state.engine.check_keyring(keyring).await;
        checked.map_err(StartError::ClientKeys).map_err(refused)?;
        let gateway = self.live_gateway.as_ref().map(|_| gateway_of(&self.state, &new));
        let gateway = gateway.transpose().map_err(refused)?;
        let parts = self.state.reloadable_parts(&new, Some(&self.parts)).map_err(refused)?;
        let others_work = self.config.worker != new.worker || self.config.outbox != new.outbox;
        let background_tasks = match others_work {
            true => Some(self.state.background_tasks(process, &new).await.map_err(refused)?),
            false => None,
        };
        // Nothing below can fail.
        if let Some(operations) = operations {
            operations.keep(&self.state.engine).await;
        }
        let operations = new.routes.routes().iter().map(|route| route.label().to_owned()).collect();
        self.state.metrics.know_routes(&new.routes);
        self.state.apply_config(process, &new, &parts);
        if let (Some(live_gateway), Some(gateway)) = (&self.live_gateway, gateway) {
            live_gateway.replace(gateway);
        }
        self.state.replaced = Some(ReplacedConfig::now(&self.config.shown));
        if let Some((live_admin, _)) = &self.live_admin {
            live_admin.take(self.state.admin(process, &new, &parts));
        }
        if let Some(background_tasks) = background_tasks {
            background.change(background_tasks);
        }
        (self.config, self.parts) = (new, parts);
        Ok(Reloaded { file: file.display().to_string(), operations })
    }
}

/// A file may be on a disk that does not answer: requests do not wait for it.
async fn read(file: PathBuf) -> Result<Config, ReloadError> {
    let reading = tokio::task::spawn_blocking(move || Config::from_file(&file)).await;
    reading.map_err(|_| ReloadError::Stopping)?.map_err(|error| ReloadError::Wrong(Arc::new(error)))
}
