//! What kept an attempt from going through its phases: shared by its ticket and its phases.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Why an attempt did not get through its phases. It decides how the attempt may end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interruption {
    /// Between two effects, as by a store that failed: the next attempt goes on after the last recovery point.
    Resumable,
    /// During an outside call without an answer: it is unknown whether it was carried out.
    InDoubt,
}

/// Shared by a ticket and its phases.
pub(super) type Interrupted = Arc<Mutex<Course>>;

/// How an attempt fares on its way through its phases.
#[derive(Default)]
pub(super) struct Course {
    /// Whether the phases were taken.
    pub(super) taken: bool,
    pub(super) interruption: Option<Interruption>,
}

pub(super) fn interrupt(interrupted: &Interrupted, why: Option<Interruption>) {
    course(interrupted).interruption = why;
}

pub(super) fn course(interrupted: &Interrupted) -> MutexGuard<'_, Course> {
    // A poisoned lock is safe to use: only fields are set under it.
    interrupted.lock().unwrap_or_else(PoisonError::into_inner)
}
