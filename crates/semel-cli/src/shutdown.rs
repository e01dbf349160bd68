//! Being asked to end.

use tokio::sync::oneshot;

/// Ctrl-C, or a polite request to end.
///
/// Listened for from the very beginning: until then, either ends the process on the spot.
pub(crate) struct ShutdownSignals {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl ShutdownSignals {
    pub(crate) fn listen() -> std::io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?],
        })
    }

    /// The first one, and the second.
    pub(crate) fn first_and_second(mut self) -> (impl Future<Output = ()>, impl Future<Output = ()>) {
        let (first, stop) = oneshot::channel();
        let (second, force) = oneshot::channel();
        tokio::spawn(async move {
            self.come().await;
            let _ = first.send(());
            self.come().await;
            let _ = second.send(());
        });
        (async { drop(stop.await) }, async { drop(force.await) })
    }

    #[cfg(unix)]
    pub(crate) async fn come(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn come(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Nobody can tell us: we go on until we are killed.
            std::future::pending::<()>().await;
        }
    }
}
