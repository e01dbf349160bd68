//! The payment service: a few lines that could be in any language. There is nothing of Semel in it: it does what it is sent, and
//! takes the operation's identity from the header that the gateway sends along.

use super::{end_of_input, tell};
use crate::DemoError;
use crate::exchange::Peer;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use clap::Args;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use semel::headers::{ATTEMPT, IDEMPOTENCY_KEY, OPERATION_ID, RESOURCE};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// Where the service is.
#[derive(Args, Clone)]
pub struct ServiceArguments {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    #[arg(long)]
    pub(crate) provider: SocketAddr,
}

impl ServiceArguments {
    pub(super) fn append_to(&self, line: &mut Vec<String>) {
        line.extend(["--listen".into(), self.listen.to_string()]);
        line.extend(["--provider".into(), self.provider.to_string()]);
    }
}

/// The header that makes the provider misbehave. The service passes it on, for the demo alone.
pub(crate) const PROVIDER_MODE: &str = "x-provider-mode";

/// Shorter than the gateway's patience with this service.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) amount: String,
    pub(crate) currency: String,
    pub(crate) merchant_reference: String,
}

/// What the client is told of a payment that was made.
#[derive(Serialize)]
pub(crate) struct Payment {
    pub(crate) id: String,
    status: &'static str,
    #[serde(flatten)]
    order: Order,
    charge_id: String,
}

impl Payment {
    pub(crate) fn made(operation: &str, order: Order, charge_id: String) -> Self {
        Self { id: format!("pay_{}", operation.replace('-', "")), status: "completed", order, charge_id }
    }
}

/// What the provider knows the charge of an operation by: the same on every attempt.
pub(crate) fn identity(operation: &str) -> String {
    format!("{operation}:charged")
}

pub(super) async fn serve(arguments: &ServiceArguments) -> Result<(), DemoError> {
    let listener = TcpListener::bind(arguments.listen).await?;
    tell(&[listener.local_addr()?])?;
    let routes = Router::new().route("/payments", post(create_payment)).with_state(arguments.provider);
    Ok(axum::serve(listener, routes).with_graceful_shutdown(end_of_input()).await?)
}

async fn create_payment(
    State(provider): State<SocketAddr>,
    headers: HeaderMap,
    Json(order): Json<Order>,
) -> Response {
    let Some(operation) = headers.get(OPERATION_ID).and_then(|id| id.to_str().ok()) else {
        return told(StatusCode::BAD_REQUEST, "through_the_gateway", "Send it through the gateway.");
    };
    match charge(provider, operation, &headers, &order).await {
        Some((StatusCode::CREATED, charge)) => {
            let charge_id = charge["id"].as_str().unwrap_or_default().to_owned();
            let payment = Payment::made(operation, order, charge_id);
            let resource = format!("payment/{}", payment.id);
            (StatusCode::CREATED, [(RESOURCE, resource)], Json(payment)).into_response()
        }
        Some((StatusCode::PAYMENT_REQUIRED, _)) => {
            told(StatusCode::PAYMENT_REQUIRED, "card_declined", "The card was declined.")
        }
        Some((StatusCode::BAD_REQUEST, why)) => {
            told(StatusCode::BAD_REQUEST, "order_invalid", why["detail"].as_str().unwrap_or_default())
        }
        // The charge may have been made. Saying anything else would be a guess.
        _ => told(StatusCode::GATEWAY_TIMEOUT, "provider_silent", "The provider did not answer."),
    }
}

/// Charges under the operation's identity. None: nothing that can be relied on came back.
async fn charge(
    provider: SocketAddr,
    operation: &str,
    headers: &HeaderMap,
    order: &Order,
) -> Option<(StatusCode, Value)> {
    let Order { amount, currency, merchant_reference } = order;
    let terms = json!({ "amount": amount, "currency": currency, "reference": merchant_reference });
    let provider = Peer::at(provider, PATIENCE).ok()?;
    let mut request = provider
        .request(Method::POST, "/charges")
        .header(CONTENT_TYPE, "application/json")
        .header(IDEMPOTENCY_KEY, identity(operation))
        .header(OPERATION_ID, operation);
    if let Some(attempt) = headers.get(ATTEMPT) {
        request = request.header("attempt", attempt);
    }
    if let Some(mode) = headers.get(PROVIDER_MODE) {
        request = request.header(PROVIDER_MODE, mode);
    }
    let (head, body) = provider.send(request, terms.to_string()).await.ok()?.into_parts();
    Some((head.status, serde_json::from_slice(&body).ok()?))
}

fn told(status: StatusCode, code: &str, detail: &str) -> Response {
    (status, Json(json!({ "code": code, "detail": detail }))).into_response()
}
