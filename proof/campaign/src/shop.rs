//! A service that is not protected by anything: whatever reaches it is charged. Behind it a provider that does not deduplicate
//! either, so that a request that comes through twice is two charges in the ledger.

use crate::client::{Call, call};
use crate::plan::Window;
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long the provider is waited for: less than the gateway waits for the shop.
const PATIENCE: Duration = Duration::from_millis(800);

pub(crate) async fn serve(listen: SocketAddr, provider: SocketAddr) -> std::io::Result<()> {
    let routes = Router::new()
        .route(Window::Day.path(), post(pay))
        .route(Window::Brief.path(), post(pay))
        .route("/operations/{id}", get(operation))
        .with_state(provider);
    axum::serve(TcpListener::bind(listen).await?, routes).await
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// One request in so many is told to come again: it counts for none.
const COME_AGAIN: u32 = 100;

async fn pay(State(provider): State<SocketAddr>, headers: HeaderMap, Json(command): Json<Value>) -> Response {
    if fastrand::u32(0..COME_AGAIN) == 0 {
        return (StatusCode::TOO_MANY_REQUESTS, Json(json!({ "code": "come_again" }))).into_response();
    }
    let charge = Call {
        method: "POST",
        path: "/charges",
        headers: &[
            ("idempotency-key", header(&headers, "semel-operation-id")),
            ("attempt", header(&headers, "semel-attempt")),
            ("content-type", "application/json"),
        ],
        body: command.to_string(),
    };
    let answer = match call(provider, charge, PATIENCE).await {
        Ok(answer) => answer,
        // Not a byte was sent.
        Err(crate::client::Failed::Unconnected) => return nothing_done(StatusCode::SERVICE_UNAVAILABLE),
        Err(crate::client::Failed::Broken) => return in_doubt(),
    };
    match answer.status {
        201 | 402 => {
            let (status, told) = told(answer.status, &answer.json());
            (status, [("content-type", "application/json")], told).into_response()
        }
        // The provider's word that this attempt has no effect: it was asked about, and said that it knows of none.
        409 => nothing_done(StatusCode::CONFLICT),
        503 => nothing_done(StatusCode::SERVICE_UNAVAILABLE),
        _ => in_doubt(),
    }
}

/// What a client is told of a charge. It follows from the charge alone, so that it is the same whenever it is asked for.
fn told(status: u16, receipt: &Value) -> (StatusCode, String) {
    let charge = json!({ "charge": receipt["id"], "reference": receipt["reference"] });
    if status == 201 {
        return (StatusCode::CREATED, charge.to_string());
    }
    let declined = json!({ "code": "card_declined", "reference": receipt["reference"] });
    (StatusCode::PAYMENT_REQUIRED, declined.to_string())
}

fn nothing_done(status: StatusCode) -> Response {
    let document = Json(json!({ "code": "nothing_done" }));
    (status, [("semel-outcome", "retryable")], document).into_response()
}

fn in_doubt() -> Response {
    (StatusCode::GATEWAY_TIMEOUT, Json(json!({ "code": "in_doubt" }))).into_response()
}

/// What became of an operation. Having said that it knows of none, the provider refuses attempts up to the one that was asked about.
async fn operation(
    State(provider): State<SocketAddr>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let path = format!("/charges/by-identity/{id}?attempt={}", header(&headers, "semel-attempt"));
    let question = Call { method: "GET", path: &path, headers: &[], body: String::new() };
    match call(provider, question, PATIENCE).await {
        Ok(answer) if answer.status == 404 => StatusCode::NOT_FOUND.into_response(),
        Ok(answer) if answer.status == 200 => {
            let receipt = answer.json();
            let status = if receipt["status"] == "declined" { 402 } else { 201 };
            let (status, told) = told(status, &receipt);
            let kept = json!({ "content-type": "application/json" });
            Json(json!({ "status": status.as_u16(), "headers": kept, "body": told })).into_response()
        }
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
