//! A service that has money moved by a provider, and cannot tell what became of it when the provider does not answer.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use semel_testing::gateway::{Answer, try_exchange};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often the shop was asked what became of a payment.
#[derive(Clone, Default)]
pub(crate) struct Questions(Arc<AtomicUsize>);

impl Questions {
    pub(crate) fn so_far(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A shop whose money this provider moves.
pub(crate) fn shop(provider: SocketAddr, questions: Questions) -> Router {
    Router::new()
        .route("/payments", post(pay))
        .route("/operations/{id}", get(what_became_of))
        .with_state((provider, questions))
}

type Counter = (SocketAddr, Questions);

/// What the client of a payment is told: by the payment itself, by a poll, or by a webhook.
fn paid(operation: &str, reference: &str) -> Value {
    let body = json!({"payment": format!("pay_{operation}"), "reference": reference}).to_string();
    json!({"status": 201, "headers": {"content-type": "application/json"}, "body": body})
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers[name].to_str().unwrap()
}

async fn pay(State((provider, _)): State<Counter>, headers: HeaderMap, body: String) -> Response {
    let (operation, attempt) = (text(&headers, "semel-operation-id"), text(&headers, "semel-attempt"));
    let mut order: Value = serde_json::from_str(&body).unwrap();
    let answer = paid(operation, order["reference"].as_str().unwrap());
    order["webhook_response"] = answer.clone();
    let identity = [("idempotency-key", operation), ("semel-operation-id", operation), ("attempt", attempt)];
    match ask(provider, "POST", "/charges".into(), &identity, order.to_string()).await {
        Some(charged) if charged.status == 201 => {
            let body = answer["body"].as_str().unwrap().to_owned();
            (StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        _ => StatusCode::GATEWAY_TIMEOUT.into_response(),
    }
}

async fn what_became_of(
    State((provider, questions)): State<Counter>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    questions.0.fetch_add(1, Ordering::SeqCst);
    let attempt = text(&headers, "semel-attempt");
    let path = format!("/charges/by-identity/{id}?attempt={attempt}");
    match ask(provider, "GET", path, &[], String::new()).await {
        Some(charge) if charge.status == 200 => {
            let reference = charge.json()["reference"].as_str().unwrap().to_owned();
            paid(&id, &reference).to_string().into_response()
        }
        Some(Answer { status: 404, .. }) => {
            let about = [
                ("semel-outcome", "not_executed"),
                ("semel-operation-id", id.as_str()),
                ("semel-attempt", attempt),
            ];
            (StatusCode::NOT_FOUND, about).into_response()
        }
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

async fn ask(
    provider: SocketAddr,
    method: &'static str,
    path: String,
    headers: &[(&'static str, &str)],
    body: String,
) -> Option<Answer> {
    let mut owned = vec![("content-type", "application/json".to_owned())];
    owned.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let asking = tokio::task::spawn_blocking(move || {
        let headers: Vec<_> = owned.iter().map(|(name, value)| (*name, value.as_str())).collect();
        try_exchange(provider, method, &path, &headers, &body).ok()
    });
    asking.await.unwrap()
}
