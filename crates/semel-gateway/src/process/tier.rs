//! The Redis in front of a store.

use crate::config::CacheConfig;
use semel::Store;
use semel_redis::{Counts, TierOptions, Tiered};
use std::sync::Arc;

/// A configured tier that cannot be made. A Redis that cannot be reached is no reason: it is not used then.
#[derive(Debug, thiserror::Error)]
#[error("the Redis at {redis} cannot be put in front of the store")]
pub struct TierError {
    /// Its address, without the password.
    redis: String,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// The store with a Redis in front, and what that counts.
pub(crate) fn in_front_of(
    store: Arc<dyn Store>,
    cache: &CacheConfig,
) -> Result<(Arc<dyn Store>, Arc<Counts>), TierError> {
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| TierError { redis: cache.url.to_string(), source };
    let mut options = TierOptions::default();
    options.max_age = cache.max_age;
    options.timeout = cache.timeout;
    options.guard = cache.guard;
    if let Some(file) = &cache.ca {
        options.ca = Some(std::fs::read(file).map_err(|error| failed(error.into()))?);
    }
    let tiered = Tiered::with_options(store, cache.url.clone(), options);
    let tiered = tiered.map_err(|error| failed(error.into()))?;
    let counts = tiered.counts();
    Ok((Arc::new(tiered), counts))
}
