//! Commits whose callers gave up while the server still waits: each one holds a session of the server's that nobody can end from here.

use super::Commits;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// How many there are, and whether it is being tried if the server commits again.
#[derive(Debug)]
pub(crate) struct Abandoned {
    most: usize,
    count: AtomicUsize,
    probing: AtomicBool,
    committed: Notify,
}

/// A commit that runs. Dropped before it has ended, it counts as abandoned.
#[must_use]
pub(crate) struct Running<'a>(Option<&'a Commits>);

impl<'a> Running<'a> {
    pub(crate) fn begin(commits: &'a Commits) -> Self {
        Self(Some(commits))
    }

    /// It was answered, well or not.
    pub(crate) fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(commits) = self.0.take() {
            commits.abandoned.count.fetch_add(1, Ordering::SeqCst);
            commits.doubt();
        }
    }
}

impl Abandoned {
    pub(super) fn new(most: usize) -> Self {
        Self { most, count: AtomicUsize::new(0), probing: AtomicBool::new(false), committed: Notify::new() }
    }

    /// Whether no more may be risked until one commit has gone well.
    pub(crate) fn is_full(&self) -> bool {
        self.count.load(Ordering::SeqCst) >= self.most
    }

    /// Whether the caller is the one that has to try a commit, and then [tell](Self::tell).
    pub(crate) fn begin_probe(&self) -> bool {
        !self.probing.swap(true, Ordering::SeqCst)
    }

    /// The probe has ended: it committed, or was given up.
    pub(crate) fn tell(&self, committed: bool) {
        if committed {
            self.count.store(0, Ordering::SeqCst);
        }
        self.probing.store(false, Ordering::SeqCst);
        self.committed.notify_waiters();
    }

    /// Returns once a probe has committed.
    pub(crate) async fn over(&self) {
        loop {
            let told = self.committed.notified();
            if !self.is_full() {
                return;
            }
            told.await;
        }
    }
}
