//! Places at which a test stops the process, to kill it there: between any two recovery points, "in the middle" is then a fact.
//!
//! `PAYMENTS_FAIL_POINT=charged:sent` makes the first request that comes by say so on standard output and go no further. Off
//! unless armed, and never in production.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// All of them, in the order in which a payment comes by; a refund has the same.
pub const FAIL_POINTS: [&str; 8] = [
    "received",
    "created:in_transaction",
    "created",
    "charged:sent",
    "charged:answered",
    "charged",
    "completing:in_transaction",
    "completed",
];

/// The armed one, if any.
#[derive(Clone, Default)]
pub(crate) struct FailPoint(Option<Arc<Armed>>);

struct Armed {
    name: String,
    reached: AtomicBool,
}

impl FailPoint {
    pub(crate) fn armed(name: Option<String>) -> Self {
        Self(name.map(|name| Arc::new(Armed { name, reached: AtomicBool::new(false) })))
    }

    /// Goes no further if this is the armed point.
    pub(crate) async fn reached(&self, name: &str) {
        if self.stops_at(name) {
            std::future::pending::<()>().await;
        }
    }

    /// The same where nothing can be awaited.
    pub(crate) fn reached_blocking(&self, name: &str) {
        if self.stops_at(name) {
            loop {
                std::thread::park();
            }
        }
    }

    fn stops_at(&self, name: &str) -> bool {
        let Some(armed) = self.0.as_ref().filter(|armed| armed.name == name) else { return false };
        if armed.reached.swap(true, Ordering::Relaxed) {
            return false;
        }
        // If nobody listens, nobody waits for it either.
        let _ = writeln!(std::io::stdout(), "fail point {name}");
        true
    }
}
