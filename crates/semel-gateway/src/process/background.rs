//! What is done beside the requests, by one shift after the other.

use super::publishing::Publishing;
use semel_worker::Worker;
use std::future::Future;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

/// What is done beside the requests.
pub(crate) struct BackgroundTasks {
    pub(super) worker: Worker,
    pub(super) publishing: Option<Publishing>,
}

impl BackgroundTasks {
    /// Works until `stop`, then waits for the questions and the events that are out, each within its deadline.
    pub(crate) async fn run(self, stop: impl Future<Output = ()>) {
        let (stopping, mut stopped) = watch::channel(());
        let publish = async {
            if let Some(publishing) = self.publishing {
                // Nothing is ever sent: it ends when the sender is dropped.
                publishing.run(async move { drop(stopped.changed().await) }).await;
            }
        };
        let stop = async {
            stop.await;
            drop(stopping);
        };
        tokio::join!(self.worker.run(stop), publish);
    }
}

/// The shift that works, and those before it that have something left to end.
///
/// Two may overlap: any number of workers and publishers may work on one store. Dropped, all of them end on the spot, as in a crash.
#[derive(Default)]
pub(crate) struct BackgroundSupervisor {
    working: JoinSet<()>,
    /// Dropped, it ends the shift that works.
    rest: Option<oneshot::Sender<()>>,
}

impl BackgroundSupervisor {
    /// This one works from now on, if any; the one before ends what is out.
    pub(crate) fn change(&mut self, next: Option<BackgroundTasks>) {
        // Those that have ended need not be remembered.
        while self.working.try_join_next().is_some() {}
        self.rest = next.map(|background_tasks| {
            let (rest, resting) = oneshot::channel();
            self.working.spawn(background_tasks.run(async { drop(resting.await) }));
            rest
        });
    }

    /// Waits for all to end: each question and each event that is out has its own deadline, and soon.
    pub(crate) async fn end(mut self) {
        self.rest = None;
        while self.working.join_next().await.is_some() {}
    }
}
