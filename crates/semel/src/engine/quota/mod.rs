//! Quotas: how many keys a tenant may have, and how fast it may make new ones.
//!
//! - `bucket.rs`: how fast;
//! - `account.rs`: what is known of one tenant;
//! - `accounts.rs`: of all of them, bounded.
//!
//! A quota decides nothing but whether a *new* key is made. A tenant over its quota still gets stored answers; only
//! where nothing is stored is the request refused, and then nothing is left of it.

mod account;
mod accounts;
mod bucket;

pub(super) use account::Pass;

use super::{Engine, Shared};
use crate::store::StoreError;
use accounts::Accounts;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What one tenant may take. Nothing is limited unless it is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Quota {
    /// How many keys may be live: those that [`Store::count_live`](crate::Store::count_live) counts.
    pub live_keys: Option<u64>,
    /// How fast new keys may be made, at each instance.
    pub new_keys: Option<Rate>,
}

/// How fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// So many a second, in the long run. At least 1.
    pub per_second: u32,
    /// So many at once, after a pause. At least 1.
    pub burst: u32,
}

/// What tenants may take.
///
/// ```
/// use semel::{Engine, EngineOptions, MemoryStore, Quota, Quotas, Rate};
/// use std::sync::Arc;
///
/// let quota = Quota { live_keys: Some(100_000), new_keys: Some(Rate { per_second: 100, burst: 500 }) };
/// let quotas = Quotas { default: quota, ..Quotas::default() };
/// let options = EngineOptions { quotas, ..EngineOptions::default() };
/// let engine = Engine::with_options(Arc::new(MemoryStore::new()), options);
/// # let _ = engine;
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// Every tenant that is not named.
    pub default: Quota,
    /// Those that are.
    pub tenants: HashMap<String, Quota>,
}

impl Quotas {
    /// What this tenant may take.
    #[must_use]
    pub fn of(&self, tenant: &str) -> Quota {
        self.tenants.get(tenant).copied().unwrap_or(self.default)
    }
}

/// Whether a tenant may make a new key now.
pub(super) enum Admission {
    /// It may, and this is given back unless it does.
    Granted(Pass),
    /// It may not, before this has passed.
    Refused { retry_after: Duration },
}

/// Quotas, and what is known of those they are for.
pub(super) struct Watched {
    quotas: Quotas,
    accounts: Accounts,
}

impl Watched {
    pub(super) fn new(quotas: Quotas) -> Self {
        Self { quotas, accounts: Accounts::default() }
    }
}

impl Shared {
    /// Whether a tenant may make a new key now.
    pub(super) async fn admit(&self, tenant: &str) -> Result<Admission, StoreError> {
        let watched = Arc::clone(&self.watched.read().unwrap_or_else(PoisonError::into_inner));
        let quota = watched.quotas.of(tenant);
        if quota == Quota::default() {
            return Ok(Admission::Granted(Pass::free()));
        }
        let account = watched.accounts.of(tenant, &quota);
        if let Some(most) = quota.live_keys {
            account.counted(&self.store, tenant, most).await?;
        }
        Ok(account.admit(&quota))
    }
}

impl Engine {
    /// Tenants may take this from now on. Where it is not what they may take already, what they have is counted again, and they may have
    /// a burst again.
    pub fn set_quotas(&self, quotas: Quotas) {
        let mut watched = self.shared.watched.write().unwrap_or_else(PoisonError::into_inner);
        if watched.quotas != quotas {
            *watched = Arc::new(Watched::new(quotas));
        }
    }
}
