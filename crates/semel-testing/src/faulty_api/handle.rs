//! The path of a request.

use super::keys::{Known, Stored};
use super::request::{account, caller, fingerprint, key, key_in_body, route, scope};
use super::style::Style;
use super::{Fault, Node};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The body that the last request brought, where requests share what they should not.
static SHARED: std::sync::Mutex<String> = std::sync::Mutex::new(String::new());

impl Stored {
    pub(super) fn problem(status: u16, detail: &str) -> Self {
        let headers = vec![("content-type".into(), "application/problem+json".into())];
        Self { status, headers, body: json!({ "status": status, "detail": detail }).to_string() }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(found, _)| found != name);
        self
    }

    fn into_response(self) -> Response {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(Body::from(self.body)).unwrap()
    }
}

pub(super) async fn handle(State(node): State<Arc<Node>>, request: Request) -> Response {
    node.requests.fetch_add(1, Ordering::SeqCst);
    match (request.method().clone(), route(request.uri()).as_str()) {
        (Method::GET, "/payments") => count(&node, request.uri().query()).into_response(),
        (Method::GET, "/auth") => who(&node, request.headers()).into_response(),
        (Method::GET, "/health") => {
            Stored { status: 204, headers: vec![], body: String::new() }.into_response()
        }
        (Method::POST, "/payments" | "/refunds") | (Method::PUT, "/payments") => {
            match protect(&node, request).await {
                Ok(answer) | Err(answer) => answer.into_response(),
            }
        }
        _ => Stored::problem(404, "no such path").into_response(),
    }
}

fn count(node: &Node, query: Option<&str>) -> Stored {
    let reference = query.and_then(|query| query.strip_prefix("reference="));
    let body = json!({ "total": node.ledger.count(reference) }).to_string();
    Stored { status: 200, headers: vec![("content-type".into(), "application/json".into())], body }
}

/// For a proxy that asks whose credential it is.
fn who(node: &Node, headers: &HeaderMap) -> Stored {
    match caller(node, headers) {
        None => Stored::problem(401, "who are you?"),
        Some(token) => {
            let headers = vec![("x-account-id".into(), account(token).into())];
            Stored { status: 204, headers, body: String::new() }
        }
    }
}

async fn protect(node: &Arc<Node>, request: Request) -> Result<Stored, Stored> {
    let fault = node.fault;
    let is = |one: Fault| fault == Some(one);
    let (head, body) = request.into_parts();
    let _turn = if node.style == Style::Serial { Some(node.turn.lock().await) } else { None };
    let token = caller(node, &head.headers);
    let looks_first = is(Fault::ReplayBeforeAuthentication)
        || (is(Fault::ReplayToRevoked) && head.headers.contains_key("authorization"));
    if token.is_none() && !looks_first {
        return Err(Stored::problem(401, "who are you?"));
    }
    let (key, body) = match node.style {
        Style::KeyInBody => {
            let text =
                to_bytes(body, 1 << 20).await.map_err(|_| Stored::problem(400, "the body broke off"))?;
            (key_in_body(&text)?, Body::from(text))
        }
        _ => (key(node, &head.headers)?, body),
    };
    let takes_none = is(Fault::KeyOptional)
        || ((is(Fault::EmptyKeyCountsAsNone) || is(Fault::QuotedKeyCountsAsNone))
            && head.headers.contains_key("idempotency-key"));
    if key.is_none() && !takes_none {
        return Err(Stored::problem(400, "a key is required"));
    }
    let key = key.map(|key| scope(node, token, &head, &key));
    if let Some(key) = key.as_deref().filter(|_| is(Fault::LockedBeforeBody)) {
        node.keys.reserve(key, "", "").map_err(|known| refusal(node, &known, None))?;
    }
    let text = to_bytes(body, 1 << 20).await.map_err(|_| Stored::problem(400, "the body broke off"))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    if let Some(reference) = reference(&text) {
        node.arrivals.add(&reference);
    }
    if is(Fault::AnswersMixedUp) {
        SHARED.lock().unwrap().clone_from(&text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let Some(key) = key else { return Ok(work(node, &head.headers, &text).await) };
    if is(Fault::NoIdempotency) {
        return Ok(work(node, &head.headers, &text).await);
    }
    let print = fingerprint(node, token, &head, &text);
    let key = if is(Fault::AnotherBodyExecutes) { format!("{key} {print}") } else { key };
    if token.is_none() && node.keys.find(&key).is_none() {
        return Err(Stored::problem(401, "who are you?"));
    }
    if std::fs::remove_file(node.directory.join("expired")).is_ok() {
        node.keys.expire(is(Fault::ExecutesAfterWindow));
    }
    if is(Fault::CheckThenAct) {
        if let Some(known) = node.keys.find(&key) {
            return Err(refusal(node, &known, Some(&print)));
        }
        let answer = work(node, &head.headers, &text).await;
        node.keys.put(&key, Known::Done { fingerprint: print, body: text, answer: answer.clone() });
        return Ok(answer);
    }
    if !is(Fault::LockedBeforeBody) {
        let reserved = if is(Fault::FingerprintStoredWithAnswer) { "" } else { &print };
        match node.keys.reserve(&key, reserved, &text) {
            Ok(()) => {}
            // Two retries can both see that it was left behind.
            Err(Known::Unknown { .. })
                if is(Fault::TakeOverIsARace)
                    && !reference(&text).is_some_and(|reference| node.ledger.recovered(&reference)) => {}
            Err(Known::Running { .. }) if is(Fault::FingerprintStoredWithAnswer) => {
                return Ok(wait_for(node, &key).await);
            }
            Err(known) if node.style.waits(&known, &print) => return Ok(wait_for(node, &key).await),
            Err(known) => return Err(refusal(node, &known, Some(&print))),
        }
    }
    let working = execute(Arc::clone(node), head.headers, key, print, text);
    if is(Fault::CancelledWithClient) {
        return Ok(working.await);
    }
    // A task of its own: a client that hangs up does not stop it.
    Ok(tokio::spawn(working).await.unwrap())
}

/// Works, and stores the answer.
async fn execute(
    node: Arc<Node>,
    headers: HeaderMap,
    key: String,
    fingerprint: String,
    text: String,
) -> Stored {
    let answer = work(&node, &headers, &text).await;
    let fails = answer.status >= 500;
    let is_refused = (400..500).contains(&answer.status);
    let keeps_refusals =
        node.fault == Some(Fault::OldRefusalForCorrectedBody) || node.style == Style::Iceberg;
    if (is_refused && !keeps_refusals) || (fails && node.fault == Some(Fault::ExecutesAfter5xx)) {
        node.keys.release(&key);
        return answer;
    }
    let forgets_body = is_refused && node.fault == Some(Fault::OldRefusalForCorrectedBody);
    let fingerprint = if forgets_body { String::new() } else { fingerprint };
    let stored = match node.fault {
        Some(Fault::LocationLost) => answer.clone().without("location"),
        Some(Fault::ErrorBodyLost) if fails => Stored { body: String::new(), ..answer.clone() },
        _ => answer.clone(),
    };
    node.keys.put(&key, Known::Done { fingerprint, body: text, answer: stored });
    answer
}

/// The same answer as the request that runs.
async fn wait_for(node: &Node, key: &str) -> Stored {
    loop {
        if let Some(Known::Done { answer, .. }) = node.keys.find(key) {
            return replay(node, answer);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// What a known key gets.
fn refusal(node: &Node, known: &Known, fingerprint: Option<&str>) -> Stored {
    let takes_any = known.fingerprint().is_empty() && node.fault == Some(Fault::OldRefusalForCorrectedBody);
    if fingerprint.is_some_and(|print| print != known.fingerprint()) && !takes_any {
        if node.fault == Some(Fault::AnotherBodyGets500) {
            return Stored::problem(500, "the keys differ");
        }
        let quote = if node.fault == Some(Fault::RefusalQuotesFirstRequest) { known.body() } else { "" };
        return node.style.reused(&format!("the key was used with another request {quote}"));
    }
    match known {
        Known::Running { .. } if node.fault == Some(Fault::DuplicatesGet500) => {
            Stored::problem(500, "duplicate key value")
        }
        Known::Running { .. } => node.style.in_flight(),
        Known::Unknown { .. } => Stored::problem(409, "outcome_unknown"),
        Known::Done { .. } if node.fault == Some(Fault::RetryRefused) => {
            Stored::problem(422, "already processed")
        }
        Known::Expired { .. } => node.style.reused("the key has expired"),
        Known::Done { answer, .. } => replay(node, answer.clone()),
    }
}

fn replay(node: &Node, answer: Stored) -> Stored {
    let answer =
        if node.fault == Some(Fault::CookieReplayed) { answer } else { answer.without("set-cookie") };
    if node.fault == Some(Fault::NoMarker) { answer } else { answer.with("idempotent-replayed", "true") }
}

fn reference(text: &str) -> Option<String> {
    serde_json::from_str::<Value>(text).ok()?["reference"].as_str().map(str::to_owned)
}

/// Makes the payment.
async fn work(node: &Arc<Node>, headers: &HeaderMap, text: &str) -> Stored {
    let shared = SHARED.lock().unwrap().clone();
    let text = if node.fault == Some(Fault::AnswersMixedUp) && !shared.is_empty() { &shared } else { text };
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let (Some(reference), true) = (body["reference"].as_str(), body["amount"].is_number()) else {
        return Stored::problem(422, "amount and reference are required");
    };
    if node.style == Style::NoArrays && text.contains('[') {
        return Stored::problem(422, "no arrays");
    }
    let delay = headers.get("x-delay").and_then(|value| value.to_str().ok()?.parse().ok());
    let delay: Option<Duration> = delay.map(Duration::from_millis).filter(|_| node.style != Style::WarmsUp);
    match delay {
        Some(delay) => node.arrivals.duplicate(reference, delay / 4).await,
        None => tokio::time::sleep(node.pause()).await,
    }
    let number = node.ledger.add(reference);
    if node.fault == Some(Fault::ExecutesAgainLater) {
        let (node, reference) = (Arc::clone(node), reference.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(900)).await;
            node.ledger.add(&reference);
        });
    }
    match delay {
        Some(delay) => node.arrivals.duplicate(reference, delay / 4 * 3).await,
        None => tokio::time::sleep(node.pause()).await,
    }
    if headers.contains_key("x-fail") {
        return Stored::problem(500, "the mail could not be sent");
    }
    if node.style == Style::NoIds {
        let headers = vec![
            ("content-type".into(), "application/json".into()),
            ("idempotency-key-expires".into(), "@1900000000".into()),
        ];
        return Stored { status: 200, headers, body: json!({ "status": "ok" }).to_string() };
    }
    let id = format!("pay_{number}");
    let answer = json!({ "id": id, "amount": body["amount"], "reference": reference }).to_string();
    let answer = Stored {
        status: 201,
        headers: vec![("content-type".into(), "application/json".into())],
        body: answer,
    }
    .with("location", &format!("/payments/{id}"))
    .with("set-cookie", &format!("session={id}"));
    if node.fault == Some(Fault::LifetimeNotTold) {
        answer
    } else {
        answer.with("idempotency-key-expires", "@1900000000")
    }
}
