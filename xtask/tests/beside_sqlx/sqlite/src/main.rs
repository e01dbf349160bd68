//! Names what such a service uses of both.

use semel_postgres::PgStore;
use semel_tower::IdempotencyLayer;
use sqlx::{PgPool, SqlitePool};

async fn layer(records: PgPool) -> Option<IdempotencyLayer> {
    Some(IdempotencyLayer::new(PgStore::new(records).await.ok()?))
}

async fn pay(own_data: SqlitePool) -> sqlx::Result<()> {
    sqlx::query("INSERT INTO payments DEFAULT VALUES").execute(&own_data).await.map(drop)
}

fn main() {
    let (_layer, _pay) = (layer, pay);
}
