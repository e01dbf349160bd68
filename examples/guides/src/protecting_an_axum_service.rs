//! docs/guides/protecting-an-axum-service.md

use std::time::Duration;

#[derive(Clone)]
struct Account {
    id: String,
}

async fn payment() -> &'static str {
    "a payment"
}

async fn create_payment() -> &'static str {
    "a payment"
}

mod layer {
    use super::{create_payment, payment};

    use axum::Router;
    use axum::routing::{get, post};
    use semel_sqlite::SqliteStore;
    use semel_tower::IdempotencyLayer;

    async fn app() -> Result<Router, Box<dyn std::error::Error>> {
        let store = SqliteStore::open("semel.db").await?;
        let app = Router::new()
            .route("/payments", post(create_payment))
            .route("/payments/{id}", get(payment))
            .layer(IdempotencyLayer::new(store));
        Ok(app)
    }
}

fn tenants(store: semel_sqlite::SqliteStore) -> axum::Router {
    use semel_tower::IdempotencyLayer;

    let layer = IdempotencyLayer::new(store)
        .tenant(|request| request.extensions.get::<Account>().map(|account| account.id.clone()));
    axum::Router::new().layer(layer)
}

mod commands {
    use semel_sqlite::SqliteStore;
    use semel_tower::{IdempotencyLayer, Protection};

    fn layer(store: SqliteStore) -> Result<IdempotencyLayer, Box<dyn std::error::Error>> {
        use semel::fingerprint::{Command, Recipe};
        use semel_tower::CommandOf;
        use serde::{Deserialize, Serialize};
        use std::sync::Arc;

        #[derive(Deserialize, Serialize)]
        struct CreatePayment {
            amount: String,
            #[serde(default)]
            note: Option<String>,
        }

        let recipe = Arc::new(Recipe::builder().command("create_payment/1").build()?);
        let command = CommandOf::new(move |_, body| {
            let payment: CreatePayment = serde_json::from_slice(body).ok()?;
            Command::new(Arc::clone(&recipe), None, &payment).ok()
        });
        let protection = Protection { command: Some(command), ..Protection::default() };
        Ok(IdempotencyLayer::new(store).protect_writes(protection)?)
    }
}

mod policy {
    use super::Duration;
    use semel_sqlite::SqliteStore;
    use semel_tower::{IdempotencyLayer, InvalidProtection};

    fn layer(store: SqliteStore) -> Result<IdempotencyLayer, InvalidProtection> {
        use semel::{InFlight, Policy};
        use semel_tower::Protection;
        use std::sync::Arc;

        let policy = Policy {
            in_flight: InFlight::Wait(Duration::from_secs(5)), // instead of 409 at once
            retention: Duration::from_secs(72 * 60 * 60),
            ..Policy::default()
        };
        let protection = Protection { policy: Arc::new(policy), ..Protection::default() };
        let layer = IdempotencyLayer::new(store).protect_writes(protection)?;
        Ok(layer)
    }
}

async fn serve(
    listener: tokio::net::TcpListener,
    app: axum::Router,
    signal: impl Future<Output = ()> + Send + 'static,
    layer: semel_tower::IdempotencyLayer,
    store: semel_sqlite::SqliteStore,
) -> std::io::Result<()> {
    let engine = layer.engine().clone();
    axum::serve(listener, app).with_graceful_shutdown(signal).await?;
    tokio::time::timeout(Duration::from_secs(30), engine.drained()).await.ok();
    store.close().await;
    Ok(())
}
