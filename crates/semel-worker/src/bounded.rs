//! Calls to the store that end.

use semel::{Engine, StoreError, StoreFuture};

/// The call, or that its answer is lost: a write may have been done.
pub(crate) async fn in_time<T>(engine: &Engine, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
    tokio::time::timeout(engine.store_timeout(), call)
        .await
        .unwrap_or_else(|_| Err(StoreError::Lost("the store did not answer in time".into())))
}
