//! docs/operating/encryption.md

use semel_sqlite::SqliteStore;
use semel_tower::IdempotencyLayer;

fn layer(
    store: SqliteStore,
    key: [u8; 32],
) -> Result<IdempotencyLayer, Box<dyn std::error::Error + Send + Sync>> {
    use semel::seal::{Keyring, SealingKey};

    let keyring = Keyring::new([SealingKey::new("2026-11", &key)?])?;
    let layer = IdempotencyLayer::sealed(store, keyring);
    Ok(layer)
}
