//! Reading the configuration anew while the process runs: on SIGHUP, and by `POST /v1/reload`.
//!
//! # How it works, and where a new section goes
//!
//! What lives as long as the process is an [`Instance`]: the store, the engine on it, what was counted. Everything else is made from the
//! configuration by functions that a start and a reload share: [`gateway_of`](crate::running::gateway_of) (what requests meet),
//! [`Instance::office`] (the admin API, and the rules of doubt) and [`Instance::beside`] (workers and publishers). A reload makes all of it
//! beside what is in force; only when nothing is in the way does it put the new in the place of the old, and that cannot fail. Requests that
//! have begun end under the configuration that they began with.
//!
//! So a new section of the file needs one line, in [`fixed::changed`], where it does not compile before it is decided:
//!
//! - used in one of the three functions alone: `section: _`, and it is reloaded;
//! - used once at the start (an address, a store): compared there, and a change of it is refused with "needs a restart";
//! - with a state that a reload must not forget (a counter, a quota, a cache): the state is a field of [`Instance`], the section's numbers are
//!   handed to it by the function that uses it.

pub(crate) mod fixed;
mod reloader;

pub(crate) use fixed::Process;
pub(crate) use reloader::Reloader;

use crate::config::LoadError;
use crate::running::StartError;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Has the configuration read anew. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Reload {
    asking: mpsc::Sender<Asked>,
}

/// Somebody who waits for the result.
pub(crate) type Asked = oneshot::Sender<Result<Reloaded, ReloadError>>;

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
    #[error("there is no file to read anew: the process was started with flags alone")]
    NoFile,
    /// The file cannot be read, or is wrong.
    #[error("the file is not right: {}", briefly(.0))]
    Wrong(Arc<LoadError>),
    /// Something changed that a running process cannot change.
    #[error("this needs a restart: {} changed", .settings.join(", "))]
    NeedsRestart {
        /// The settings.
        settings: Vec<&'static str>,
    },
    /// The file says what cannot be done.
    #[error("the file says what cannot be done: {}", with_causes(&**.0))]
    Start(Arc<StartError>),
    /// The admin API would be open to the network.
    #[error(
        "the admin API listens on {0}, which is open to the network, and the file has no [admin] token any more"
    )]
    Open(SocketAddr),
    /// The process ends.
    #[error("the process is stopping")]
    Stopping,
}

impl ReloadError {
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
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Asked>) {
        let (asking, asked) = mpsc::channel(4);
        (Self { asking }, asked)
    }

    /// Reads the configuration anew, and returns once it is in force, or refused. It is logged either way.
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

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        words = format!("{words}: {source}");
        cause = source.source();
    }
    words
}
