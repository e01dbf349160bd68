//! How one operation is protected.

use crate::command_of::CommandOf;
use crate::headers::KeptHeaders;
use crate::outcome::OutcomeRules;
use http::request::Parts;
use semel::fingerprint::{JsonBody, Recipe};
use semel::key::{KeyRules, KeySources};
use semel::{KeyScope, Policy};
use std::sync::Arc;
use std::time::Duration;

/// Whether a request needs a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KeyRequirement {
    /// Without one it is refused with 400.
    #[default]
    Required,
    /// Without one it passes, unprotected.
    Optional,
}

/// A name that an operation had before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FormerName {
    /// This one.
    Name(Arc<str>),
    /// The method and path of each request, as where no operation is declared.
    MethodAndPath,
}

/// How one operation is protected. The default is safe as it stands.
#[derive(Clone, Debug)]
pub struct Protection {
    /// Whether a key is required. Default: yes.
    pub key: KeyRequirement,
    /// Where the key is looked for. Default: in the header `Idempotency-Key`.
    pub key_sources: KeySources,
    /// What the key must look like. Default: as the layer has it.
    pub key_rules: Option<KeyRules>,
    /// Within what a key names one request. Default: within the operation.
    ///
    /// While keys are live, a change makes their retries execute again, unless [`former_key_scope`](Self::former_key_scope) says where they
    /// are known.
    pub key_scope: KeyScope,
    /// The scope that keys had before, in which they may still be known. Default: none.
    pub former_key_scope: Option<KeyScope>,
    /// The names that the operation had before, under which keys may still be known. Default: none.
    pub formerly: Vec<FormerName>,
    /// Leases, windows and what doubt leads to.
    pub policy: Arc<Policy>,
    /// What makes two requests the same. Default: everything that is asked for.
    pub recipe: Arc<Recipe>,
    /// Reads the handler's own command, to be compared instead of the body. Default: none is read.
    pub command: Option<CommandOf>,
    /// How long the service may take before the client is answered that the outcome is unknown. The work continues, and its late
    /// outcome still counts. Must be shorter than the lease. Default 25 s.
    pub timeout: Duration,
    /// The largest request body, in bytes. Default 1 MiB.
    pub max_request_body: usize,
    /// The largest response body that is kept for retries, in bytes. A larger one is passed on, and retries learn that it was not
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
            key_sources: KeySources::default(),
            key_rules: None,
            key_scope: KeyScope::default(),
            former_key_scope: None,
            formerly: Vec::new(),
            policy: Arc::new(Policy::default()),
            recipe: Arc::new(Recipe::default()),
            command: None,
            timeout: Duration::from_secs(25),
            max_request_body: MIB,
            max_stored_response: MIB,
            kept_headers: KeptHeaders::default(),
            outcomes: OutcomeRules::default(),
        }
    }
}

/// A [`Protection`] that was checked. Only such a one protects. Cheap to clone.
///
/// ```
/// use semel_tower::{Protection, ValidProtection};
/// use std::time::Duration;
///
/// let patient = Protection { timeout: Duration::from_secs(29), ..Protection::default() };
/// assert!(ValidProtection::try_from(patient).is_ok());
/// // The default lease is 30 s: the handler could still be at work when another request takes over.
/// let too_patient = Protection { timeout: Duration::from_secs(60), ..Protection::default() };
/// assert!(ValidProtection::try_from(too_patient).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct ValidProtection(Arc<Protection>);

impl ValidProtection {
    /// The same, with another rule about keys.
    #[must_use]
    pub fn with_key(mut self, key: KeyRequirement) -> Self {
        Arc::make_mut(&mut self.0).key = key;
        self
    }

    /// The same, with another recipe.
    #[must_use]
    pub fn with_recipe(mut self, recipe: Arc<Recipe>) -> Self {
        Arc::make_mut(&mut self.0).recipe = recipe;
        self
    }
}

impl ValidProtection {
    /// The same, with another scope of keys, and the one that they had before.
    #[must_use]
    pub fn with_key_scope(mut self, scope: KeyScope, former: Option<KeyScope>) -> Self {
        let protection = Arc::make_mut(&mut self.0);
        (protection.key_scope, protection.former_key_scope) = (scope, former);
        self
    }

    /// The same, with names that the operation had before.
    #[must_use]
    pub fn with_formerly(mut self, formerly: Vec<FormerName>) -> Self {
        Arc::make_mut(&mut self.0).formerly = formerly;
        self
    }
}

impl TryFrom<Protection> for ValidProtection {
    type Error = InvalidProtection;

    fn try_from(protection: Protection) -> Result<Self, InvalidProtection> {
        protection.check()?;
        Ok(Self(Arc::new(protection)))
    }
}

impl std::ops::Deref for ValidProtection {
    type Target = Protection;

    fn deref(&self) -> &Protection {
        &self.0
    }
}

impl Protection {
    /// Whether a request with this head has a key, or may have one in its body.
    #[must_use]
    pub fn may_have_key(&self, parts: &Parts) -> bool {
        self.key_sources.headers().any(|name| parts.headers.contains_key(name))
            || self.key_sources.reads_body() && JsonBody::of(&parts.headers) != JsonBody::No
    }

    /// Checks that the protection can keep its promise.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self) -> Result<(), InvalidProtection> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protection_that_cannot_keep_its_promise_is_refused_whoever_hands_it_out() {
        let layer = || crate::IdempotencyLayer::new(semel::MemoryStore::new());
        let too_patient = Protection { timeout: Duration::from_secs(30), ..Protection::default() };
        let error = ValidProtection::try_from(too_patient.clone()).unwrap_err();
        assert!(matches!(error, InvalidProtection::TimeoutNotBelowLease { .. }));
        assert_eq!(layer().protect_writes(too_patient).err(), Some(error));
        let policy = Arc::new(Policy { retention: Duration::ZERO, ..Policy::default() });
        let forgetful = Protection { policy, ..Protection::default() };
        let error = ValidProtection::try_from(forgetful.clone()).unwrap_err();
        assert_eq!(error, InvalidProtection::NoRetention);
        assert_eq!(layer().protect_writes(forgetful).err(), Some(error));
    }
}
