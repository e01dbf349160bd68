//! How one operation is protected.

use crate::headers::KeptHeaders;
use crate::outcome::OutcomeRules;
use semel::Policy;
use semel::fingerprint::Recipe;
use std::sync::Arc;
use std::time::Duration;

/// Whether a request has to bring a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KeyRequirement {
    /// Without one it is refused with 400.
    #[default]
    Required,
    /// Without one it passes, unprotected.
    Optional,
}

/// How one operation is protected. The default is safe as it stands.
#[derive(Clone, Debug)]
pub struct Protection {
    /// Whether a key is compulsory. Default: yes.
    pub key: KeyRequirement,
    /// Leases, windows and what doubt leads to.
    pub policy: Arc<Policy>,
    /// What makes two requests the same. Default: everything that is asked for.
    pub recipe: Arc<Recipe>,
    /// How long the service may take before the client is told that the outcome is unknown. The work goes on, and its late
    /// outcome still counts. Must be shorter than the lease. Default 25 s.
    pub timeout: Duration,
    /// The largest request body, in bytes. Default 1 MiB.
    pub max_request_body: usize,
    /// The largest response body that is kept for retries, in bytes. A larger one is passed on, and retries are told that it was not
    /// stored. Default 1 MiB.
    pub max_stored_response: usize,
    /// Which header fields are kept for retries.
    pub kept_headers: KeptHeaders,
    /// What each status says of the operation.
    pub outcomes: OutcomeRules,
}

/// A protection that cannot keep its promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidProtection {
    /// The lease would run out before the service is given up on.
    #[error(
        "the timeout ({timeout:?}) must be shorter than the lease ({lease:?}); lower the one or raise the other"
    )]
    TimeoutNotBelowLease {
        /// Its time-out.
        timeout: Duration,
        /// Its lease.
        lease: Duration,
    },
    /// Nothing could ever be replayed.
    #[error("the retention must be longer than zero")]
    NoRetention,
}

impl Default for Protection {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            key: KeyRequirement::default(),
            policy: Arc::new(Policy::default()),
            recipe: Arc::new(Recipe::default()),
            timeout: Duration::from_secs(25),
            max_request_body: MIB,
            max_stored_response: MIB,
            kept_headers: KeptHeaders::default(),
            outcomes: OutcomeRules::default(),
        }
    }
}

impl Protection {
    /// Checks that the protection can keep its promise.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), InvalidProtection> {
        if self.timeout >= self.policy.lease {
            return Err(InvalidProtection::TimeoutNotBelowLease {
                timeout: self.timeout,
                lease: self.policy.lease,
            });
        }
        if self.policy.retention.is_zero() {
            return Err(InvalidProtection::NoRetention);
        }
        Ok(())
    }
}
