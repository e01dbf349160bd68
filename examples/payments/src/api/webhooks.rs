//! What the provider tells by itself: its signature is its proof of who it is, and no key is asked of it.

use crate::settling::Settler;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use semel_worker::WebhookIntake;

/// The name under which the provider's secrets are known.
pub(crate) const SOURCE: &str = "provider";

#[derive(Clone)]
struct Desk {
    intake: WebhookIntake,
    settler: Settler,
}

pub(crate) fn routes(intake: WebhookIntake, settler: Settler) -> Router {
    Router::new().route("/webhooks/provider", post(receive)).with_state(Desk { intake, settler })
}

/// First the payment's rows, then its operation's outcome: the provider delivers again what was not answered with 2xx, and a message
/// that comes again finds what it did.
async fn receive(State(desk): State<Desk>, headers: HeaderMap, body: Body) -> Response {
    let Desk { intake, settler } = desk;
    let answer = match to_bytes(body, intake.max_body()).await {
        Err(_) => intake.too_large(SOURCE),
        Ok(body) => {
            let told = body.clone();
            let rows = move |record| async move { settler.told(&record, &told).await };
            intake.handle_after(SOURCE, &headers, body, rows).await
        }
    };
    answer.into_response().map(Body::from).into_response()
}
