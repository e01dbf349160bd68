//! What workers know about an operation.

use crate::reconcile::Reconcile;
use semel::{Policy, Settling};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The rules of one operation: the policy of its requests, and where to poll.
#[derive(Clone, Debug)]
pub struct OperationRules {
    /// The policy of its requests.
    pub policy: Arc<Policy>,
    /// Where to poll about an unknown outcome. `None`: no polls.
    pub asking: Option<Asking>,
}

impl OperationRules {
    /// Rules without polls.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Self { policy: policy.into(), asking: None }
    }

    /// The same, with polls.
    ///
    /// The policy has to say so too ([`Settling::Poll`], as [`Asking::settling`] has it): by [`Settling::Operator`] an unknown
    /// outcome is a dead letter at once, which is never polled.
    #[must_use]
    pub fn asking(mut self, asking: Asking) -> Self {
        if !matches!(self.policy.settling, Settling::Poll { .. }) {
            tracing::warn!("an operation has a poll configured, and a policy that never polls");
        }
        self.asking = Some(asking);
        self
    }
}

/// Where to poll about unknown outcomes, and how often.
#[derive(Clone)]
pub struct Asking {
    /// The service.
    pub whom: Arc<dyn Reconcile>,
    /// The time from the doubt to the first poll, and from that to the second. It then doubles each time, with random jitter.
    /// Default 5 s.
    pub every: Duration,
    /// How many polls before the operation becomes a dead letter. Default 12.
    pub attempts: u32,
    /// How long an answer may take. Default 5 s.
    pub deadline: Duration,
}

impl Asking {
    /// Asks `whom`, by the defaults.
    pub fn new(whom: impl Reconcile) -> Self {
        Self {
            whom: Arc::new(whom),
            every: Duration::from_secs(5),
            attempts: 12,
            deadline: Duration::from_secs(5),
        }
    }

    /// What the operation's policy needs for polls.
    #[must_use]
    pub fn settling(&self) -> Settling {
        Settling::Poll { first: self.every }
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("every", &self.every)
            .field("attempts", &self.attempts)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Finds the rules of an operation by its name. `None`: it is not ours, and its records are left to workers that know it. (Windows
/// need no rules: whatever is over is reaped.)
pub type Rules = Arc<dyn Fn(&str) -> Option<OperationRules> + Send + Sync>;
