use axum::{Json, Router, http::StatusCode, routing::post};
use semel_sqlite::SqliteStore;
use semel_tower::{IdempotencyLayer, Operation};
use serde_json::{Value, json};

async fn create_payment(operation: Operation, Json(command): Json<Value>) -> (StatusCode, Json<Value>) {
    println!("paying {}", command["amount"]); // the effect that must happen once
    (StatusCode::CREATED, Json(json!({ "id": operation.id().to_string(), "amount": command["amount"] })))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = SqliteStore::open("semel.db").await?;
    let app = Router::new().route("/payments", post(create_payment)).layer(IdempotencyLayer::new(store));

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
