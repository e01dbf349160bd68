//! Reloads the configuration while the process runs: on SIGHUP, and by `POST /v1/reload`.

use crate::config::LoadError;
use semel_http::with_causes;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Triggers a reload of the configuration. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reload {
    asking: mpsc::Sender<ReloadRequest>,
}

/// A caller that waits for the result.
pub(crate) type ReloadRequest = oneshot::Sender<Result<Reloaded, ReloadError>>;

/// The new configuration is in force.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Reloaded {
    /// The file that was read.
    pub file: String,
    /// The operations that are declared now.
    pub operations: Vec<String>,
}

/// Why the old configuration stays in force.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The process was started without a file.
    #[error("there is no config file to reload: the process was started with flags only")]
    NoFile,
    /// The file cannot be read, or is wrong.
    #[error("the file is invalid: {}", briefly(.0))]
    Wrong(Arc<LoadError>),
    /// Something changed that a running process cannot change.
    #[error("this needs a restart: {} changed", .settings.join(", "))]
    NeedsRestart {
        /// The settings.
        settings: Vec<&'static str>,
    },
    /// The file says what cannot be done.
    #[error("the configuration cannot be applied: {}", with_causes(&**.0))]
    Start(Arc<dyn std::error::Error + Send + Sync>),
    /// The admin API would be open to the network.
    #[error(
        "the admin API listens on {0}, which is open to the network, and the file no longer has an [admin] token"
    )]
    Open(SocketAddr),
    /// The process ends.
    #[error("the process is stopping")]
    Stopping,
}

impl ReloadError {
    /// The code of the refusal, as the admin API and the audit spell it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoFile => "admin_nothing_to_reload",
            Self::NeedsRestart { .. } => "admin_needs_restart",
            Self::Stopping => "admin_stopping",
            Self::Wrong(_) | Self::Start(_) | Self::Open(_) => "admin_config_wrong",
        }
    }

    /// All that is wrong with the file, as a compiler would show it.
    #[must_use]
    pub fn report(&self) -> Option<String> {
        match self {
            Self::Wrong(error) => match &**error {
                LoadError::Wrong(errors) => Some(errors.to_string()),
                LoadError::Unreadable { .. } => None,
            },
            _ => None,
        }
    }
}

impl Reload {
    /// A way to ask, and where it leads. More than a few who ask at once wait for each other.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (asking, asked) = mpsc::channel(4);
        (Self { asking }, asked)
    }

    /// Reloads the configuration, and returns once it is in force, or refused. Either is logged.
    ///
    /// # Errors
    /// Why the old one stays in force.
    pub async fn now(&self) -> Result<Reloaded, ReloadError> {
        let (asked, answer) = oneshot::channel();
        self.asking.send(asked).await.map_err(|_| ReloadError::Stopping)?;
        answer.await.unwrap_or(Err(ReloadError::Stopping))
    }
}

/// The places and what is wrong there, on one line for the log.
fn briefly(error: &LoadError) -> String {
    let LoadError::Wrong(errors) = error else { return with_causes(error) };
    let file = errors.file().display();
    let each = errors.errors().iter().map(|error| match &error.place {
        Some(place) => format!("{file}:{}:{}: {}", place.line, place.column, error.wrong),
        None => format!("{file}: {}", error.wrong),
    });
    each.collect::<Vec<_>>().join("; ")
}
