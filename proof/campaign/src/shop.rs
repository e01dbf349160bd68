//! A service that is not protected by anything: whatever reaches it is charged. Behind it a provider that does not deduplicate
//! either (but for work that is resumed), so that a request that comes through twice is two charges in the ledger.

use crate::client::{Call, Failed, call};
use crate::outcome::Outcome;
use crate::plan::Window;
use crate::starts::Notebook;
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// How long the provider is waited for: less than the gateway waits for the shop.
const PATIENCE: Duration = Duration::from_millis(800);

/// How a service is started.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    #[arg(long)]
    provider: SocketAddr,
    /// Where starts are noted
    #[arg(long)]
    pub(crate) starts: PathBuf,
    /// The store that reservations are looked up in, past Semel
    #[arg(long)]
    pub(crate) look_at: Option<String>,
    /// The provider reports by webhook, and is told with the order what the client is to hear
    #[arg(long)]
    webhooks: bool,
}

struct Shop {
    provider: SocketAddr,
    notebook: Notebook,
    webhooks: bool,
}

pub(crate) async fn serve(arguments: Arguments) -> Outcome<()> {
    let Arguments { listen, provider, starts, look_at, webhooks } = arguments;
    let notebook = Notebook::open(&starts, look_at.as_deref())?;
    let routes = Router::new()
        .route(Window::Day.path(), post(pay))
        .route(Window::Brief.path(), post(pay))
        .route("/operations/{id}", get(operation))
        .with_state(Arc::new(Shop { provider, notebook, webhooks }));
    Ok(axum::serve(TcpListener::bind(listen).await?, routes).await?)
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// One request in so many is told to come again: it counts for none.
const COME_AGAIN: u32 = 100;

async fn pay(State(shop): State<Arc<Shop>>, headers: HeaderMap, Json(command): Json<Value>) -> Response {
    let (id, attempt) = (header(&headers, "semel-operation-id"), header(&headers, "semel-attempt"));
    let number = attempt.parse().unwrap_or_default();
    let reference = command["reference"].as_str().unwrap_or_default();
    // What cannot be noted is not done.
    if shop.notebook.start(id, number, reference).await.is_err() {
        return in_doubt();
    }
    let nothing_done = |status, code| match shop.notebook.nothing(id, number) {
        Ok(()) => nothing_done(status, code),
        Err(_) => in_doubt(),
    };
    if fastrand::u32(0..COME_AGAIN) == 0 {
        return nothing_done(StatusCode::TOO_MANY_REQUESTS, "come_again");
    }
    let mut order = command.clone();
    if shop.webhooks {
        for (member, status) in [("webhook_response", 201), ("webhook_response_declined", 402)] {
            let (status, body) = told(status, id, reference);
            let kept = json!({ "content-type": "application/json" });
            order[member] = json!({ "status": status.as_u16(), "headers": kept, "body": body });
        }
    }
    let charge = Call {
        method: "POST",
        path: "/charges",
        headers: &[
            ("idempotency-key", id),
            ("attempt", attempt),
            ("semel-operation-id", id),
            ("content-type", "application/json"),
        ],
        body: order.to_string(),
    };
    let answer = match call(shop.provider, charge, PATIENCE).await {
        Ok(answer) => answer,
        // Not a byte was sent.
        Err(Failed::Unconnected) => return nothing_done(StatusCode::SERVICE_UNAVAILABLE, "nothing_done"),
        Err(Failed::Broken) => return in_doubt(),
    };
    match answer.status {
        201 | 402 => {
            let (status, told) = told_of(answer.status, &answer.json(), shop.webhooks);
            (status, [("content-type", "application/json")], told).into_response()
        }
        // The provider's word that this attempt has no effect: it was asked about, and said that it knows of none.
        409 => nothing_done(StatusCode::CONFLICT, "nothing_done"),
        503 => nothing_done(StatusCode::SERVICE_UNAVAILABLE, "nothing_done"),
        _ => in_doubt(),
    }
}

/// What a client is told of a receipt. It follows from the charge alone, so that it is the same whenever it is asked for, and whoever settles it.
/// Where the client's answer goes along with the order, the charge has no name yet: it goes by the operation's.
pub(crate) fn told_of(status: u16, receipt: &Value, webhooks: bool) -> (StatusCode, String) {
    let name = if webhooks { &receipt["identity"] } else { &receipt["id"] };
    told(status, name.as_str().unwrap_or_default(), receipt["reference"].as_str().unwrap_or_default())
}

fn told(status: u16, charge: &str, reference: &str) -> (StatusCode, String) {
    if status == 201 {
        return (StatusCode::CREATED, json!({ "charge": charge, "reference": reference }).to_string());
    }
    let declined = json!({ "code": "card_declined", "reference": reference });
    (StatusCode::PAYMENT_REQUIRED, declined.to_string())
}

/// A plain 429 means that already.
fn nothing_done(status: StatusCode, code: &str) -> Response {
    let document = Json(json!({ "code": code }));
    if status == StatusCode::TOO_MANY_REQUESTS {
        return (status, document).into_response();
    }
    (status, [("semel-outcome", "retryable")], document).into_response()
}

fn in_doubt() -> Response {
    (StatusCode::GATEWAY_TIMEOUT, Json(json!({ "code": "in_doubt" }))).into_response()
}

/// What became of an operation. Having said that it knows of none, the provider refuses attempts up to the one that was asked about.
async fn operation(State(shop): State<Arc<Shop>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let attempt = header(&headers, "semel-attempt");
    let path = format!("/charges/by-identity/{id}?attempt={attempt}");
    let question = Call { method: "GET", path: &path, headers: &[], body: String::new() };
    match call(shop.provider, question, PATIENCE).await {
        Ok(answer) if answer.status == 404 => {
            if shop.notebook.sealed(&id, attempt.parse().unwrap_or_default()).is_err() {
                return StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            let about = [
                ("semel-operation-id", id.as_str()),
                ("semel-attempt", attempt),
                ("semel-outcome", "not_executed"),
            ];
            (StatusCode::NOT_FOUND, about).into_response()
        }
        Ok(answer) if answer.status == 200 => {
            let receipt = answer.json();
            let status = if receipt["status"] == "declined" { 402 } else { 201 };
            let (status, told) = told_of(status, &receipt, shop.webhooks);
            let kept = json!({ "content-type": "application/json" });
            // The provider has one answer for an operation, whichever attempt it was: that it declined is true of this one.
            let about = [("semel-operation-id", id.as_str()), ("semel-attempt", attempt)];
            (about, Json(json!({ "status": status.as_u16(), "headers": kept, "body": told }))).into_response()
        }
        _ => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}
