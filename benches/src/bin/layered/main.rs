//! The service behind Semel's layer on PostgreSQL, as the layer is by default.

use axum::Router;
use axum::routing::post;
use semel_benches::payments::{create, serve};
use semel_postgres::PgStore;
use semel_tower::IdempotencyLayer;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    serve(async |database| {
        let store = PgStore::connect(&database).await?;
        Ok(Router::new().route("/payments", post(create)).layer(IdempotencyLayer::new(store)))
    })
}
