//! A partner who hears of payments, and at first says nothing.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::support::PATIENCE;

/// What the partner knows a webhook by, and what it is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Webhook {
    pub(crate) payment: String,
    id: String,
}

#[derive(Clone)]
pub(crate) struct Partner {
    address: SocketAddr,
    ears: Ears,
}

#[derive(Clone, Default)]
struct Ears {
    heard: watch::Sender<Vec<Webhook>>,
    answers: watch::Sender<bool>,
}

impl Partner {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, ears) = (listener.local_addr().unwrap(), Ears::default());
        let router = Router::new().route("/payments", post(hear)).with_state(ears.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, ears }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/payments", self.address)
    }

    /// From now on.
    pub(crate) fn answers(&self) {
        self.ears.answers.send_replace(true);
    }

    pub(crate) fn heard(&self) -> Vec<Webhook> {
        self.ears.heard.borrow().clone()
    }

    pub(crate) async fn has_heard(&self) {
        let mut heard = self.ears.heard.subscribe();
        let hearing = heard.wait_for(|heard| !heard.is_empty());
        tokio::time::timeout(PATIENCE, hearing).await.expect("the partner hears of it").unwrap();
    }
}

async fn hear(State(ears): State<Ears>, headers: HeaderMap, Json(body): Json<Value>) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert!(header("webhook-signature").starts_with("v1,"));
    let webhook = Webhook { id: header("webhook-id"), payment: body["id"].as_str().unwrap().into() };
    let answers = *ears.answers.borrow();
    ears.heard.send_modify(|heard| heard.push(webhook));
    if !answers {
        std::future::pending::<()>().await;
    }
    StatusCode::NO_CONTENT
}
