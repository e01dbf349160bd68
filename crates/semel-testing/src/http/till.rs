//! A till that counts what it did, and answers as the request's `x-…` headers tell it to. Those are no part of what makes two requests
//! the same, so that a retry can be told to be answered differently.

use crate::store::Gate;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::{any, post};
use http::{HeaderMap, Method};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub struct Till {
    effects: AtomicU32,
    pub gate: Arc<Gate>,
    seen: Mutex<Vec<HeaderMap>>,
}

impl Default for Till {
    fn default() -> Self {
        Self { effects: AtomicU32::new(0), gate: Gate::new(), seen: Mutex::default() }
    }
}

impl Till {
    pub fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route("/payments", any(pay))
            .route("/refunds", post(pay))
            .route("/payments/{id}/notes", post(pay))
            .with_state(self)
    }

    /// How many payments were made.
    pub fn effects(&self) -> u32 {
        self.effects.load(Ordering::SeqCst)
    }

    /// The headers of the last request that came this far.
    pub fn saw(&self) -> HeaderMap {
        self.seen.lock().unwrap().last().cloned().expect("a request came this far")
    }

    /// How many requests came this far.
    pub fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn pay(State(till): State<Arc<Till>>, method: Method, headers: HeaderMap, _body: Bytes) -> Response {
    till.seen.lock().unwrap().push(headers.clone());
    if headers.contains_key("x-hold") {
        till.gate.pass().await;
    }
    let number = till.effects.fetch_add(1, Ordering::SeqCst) + 1;
    assert!(!headers.contains_key("x-panic"), "as told");
    let status = headers.get("x-status").map_or(201, |status| status.to_str().unwrap().parse().unwrap());
    let mut response = Response::builder().status(status).header("content-type", "text/plain");
    for told in headers.get_all("x-respond") {
        let (name, value) = told.to_str().unwrap().split_once('=').unwrap();
        response = response.header(name, value);
    }
    let body =
        if method == Method::HEAD || status == 204 { String::new() } else { format!("effect {number}") };
    response.body(Body::from(body)).unwrap()
}
