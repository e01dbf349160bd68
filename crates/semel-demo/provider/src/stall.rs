//! Requests that are kept waiting. Whoever watches can wait until one is (`GET /stalls?at_least=1`), and let them all go
//! (`DELETE /stalls`): "in the middle of it" is then a fact, and not a guess about time.

use serde::Serialize;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// No more than this many wait before their effect: each is a task that outlives its connection.
const MOST_BEFORE: usize = 1024;
/// How long somebody who asks for stalls is kept waiting for them.
const LONGEST_WATCH: Duration = Duration::from_secs(10);

/// How many requests wait where.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub(crate) struct StalledRequest {
    before: usize,
    after: usize,
}

impl StalledRequest {
    fn all(self) -> usize {
        self.before + self.after
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StallPoint {
    Before,
    After,
}

pub(crate) struct Stalls {
    waiting: watch::Sender<StalledRequest>,
    /// How often all were let go.
    let_go: watch::Sender<u64>,
}

/// A request that is being kept waiting. Its end, whichever it is, takes it off the count.
pub(crate) struct Stall<'a> {
    stalls: &'a Stalls,
    place: StallPoint,
    let_go: watch::Receiver<u64>,
}

impl Default for Stalls {
    fn default() -> Self {
        Self { waiting: watch::channel(StalledRequest::default()).0, let_go: watch::channel(0).0 }
    }
}

impl Stalls {
    /// Begins a stall; none if too many wait already.
    pub(crate) fn begin(&self, place: StallPoint) -> Option<Stall<'_>> {
        // Before it is counted: who sees it counted and lets all go has let this one go as well.
        let let_go = self.let_go.subscribe();
        let begun = self.waiting.send_if_modified(|waiting| match place {
            StallPoint::Before if waiting.before >= MOST_BEFORE => false,
            StallPoint::Before => {
                waiting.before += 1;
                true
            }
            StallPoint::After => {
                waiting.after += 1;
                true
            }
        });
        begun.then_some(Stall { stalls: self, place, let_go })
    }

    /// Waits until at least so many requests wait, for a while, and tells how many do.
    pub(crate) async fn at_least(&self, number: usize) -> StalledRequest {
        let mut waiting = self.waiting.subscribe();
        let reached = timeout(LONGEST_WATCH, waiting.wait_for(|waiting| waiting.all() >= number)).await;
        match reached {
            Ok(Ok(waiting)) => *waiting,
            Ok(Err(_)) | Err(_) => *self.waiting.borrow(),
        }
    }

    /// Lets all go that wait now, and tells how many these were.
    pub(crate) fn let_go(&self) -> StalledRequest {
        let waiting = *self.waiting.borrow();
        self.let_go.send_modify(|times| *times += 1);
        waiting
    }
}

impl Stall<'_> {
    /// Waits for as long as a stall takes, or until it is let go.
    pub(crate) async fn end(mut self, stall: Duration) {
        let _over_or_let_go = timeout(stall, self.let_go.changed()).await;
    }
}

impl Drop for Stall<'_> {
    fn drop(&mut self) {
        self.stalls.waiting.send_modify(|waiting| match self.place {
            StallPoint::Before => waiting.before -= 1,
            StallPoint::After => waiting.after -= 1,
        });
    }
}
