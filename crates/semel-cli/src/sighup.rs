//! SIGHUP: reloads the configuration.

use semel_gateway::Reload;

/// Signals that trigger a reload.
///
/// Listened for from the very beginning: until then, one of them ends the process on the spot.
pub(crate) struct Sighup {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Sighup {
    pub(crate) fn listen() -> std::io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            signal: signal(SignalKind::hangup())?,
        })
    }

    /// Reloads at each of them, for as long as the process runs. What came of it is in the log.
    #[cfg(unix)]
    pub(crate) fn reload(mut self, reload: Reload) {
        tokio::spawn(async move {
            // Several that come during one reload are one: the file is read after the last of them all the same.
            while self.signal.recv().await.is_some() {
                let _logged = reload.now().await;
            }
        });
    }

    /// There is no such signal here: `semel reload` does it.
    #[cfg(not(unix))]
    pub(crate) fn reload(self, _reload: Reload) {}
}
