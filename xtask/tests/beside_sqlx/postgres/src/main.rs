//! Names what such a service uses of both.

use semel_postgres::PgStore;
use semel_tower::{CompleteError, IdempotencyLayer, Operation, Replayable, Reply};
use sqlx::PgPool;

#[derive(sqlx::FromRow)]
struct Payment {
    id: i64,
}

async fn layer(pool: PgPool) -> Option<IdempotencyLayer> {
    Some(IdempotencyLayer::new(PgStore::new(pool).await.ok()?))
}

async fn pay(operation: Operation, pool: PgPool, reply: Reply) -> Result<Replayable, CompleteError> {
    let mut tx = pool.begin().await.map_err(|_| CompleteError::Finished)?;
    let insert = sqlx::query_as("INSERT INTO payments DEFAULT VALUES RETURNING id");
    let payment: Payment = insert.fetch_one(&mut *tx).await.map_err(|_| CompleteError::Finished)?;
    operation.complete_in(tx, reply.resource("payment", payment.id.to_string())).await
}

fn main() {
    let (_layer, _pay) = (layer, pay);
    println!("{}", sqlx::migrate::Migrator::DEFAULT.iter().count());
}
