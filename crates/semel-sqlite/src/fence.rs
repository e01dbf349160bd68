//! Keeps an application's closure within its savepoint.

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, Authorization};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Keeps closures from ending the transaction that they share with everybody else of the group.
pub(crate) struct Fence(Arc<AtomicBool>);

const SAVEPOINT: &str = "semel_closure";

pub(crate) const OPEN: &str = "SAVEPOINT semel_closure";
pub(crate) const UNDO: &str = "ROLLBACK TO semel_closure";
pub(crate) const RELEASE: &str = "RELEASE semel_closure";

impl Fence {
    /// Puts the fence around `conn`; open at first.
    pub(crate) fn around(conn: &mut Connection) -> rusqlite::Result<Self> {
        let closed = Arc::new(AtomicBool::new(false));
        let fence = Self(closed.clone());
        // SQLite may roll everything back in the middle of a closure, for a full disk say. Whatever the closure does then would be a
        // transaction of its own each.
        conn.commit_hook(Some({
            let closed = closed.clone();
            move || closed.load(Ordering::Relaxed)
        }))?;
        // Asked when a statement is prepared. Ours are prepared while no closure runs.
        conn.authorizer(Some(move |asked: rusqlite::hooks::AuthContext<'_>| {
            let ends_it = match asked.action {
                AuthAction::Transaction { .. } => true,
                AuthAction::Savepoint { savepoint_name, .. } => {
                    savepoint_name.eq_ignore_ascii_case(SAVEPOINT)
                }
                _ => false,
            };
            if ends_it && closed.load(Ordering::Relaxed) { Authorization::Deny } else { Authorization::Allow }
        }))?;
        Ok(fence)
    }

    pub(crate) fn closed(&self, closed: bool) {
        self.0.store(closed, Ordering::Relaxed);
    }
}
