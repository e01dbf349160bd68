//! What a handler holds of the operation that it executes.

use crate::support::{Ask, KEY, Shop};
use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use semel::{Body, Outcome, State, StoredResponse};
use semel_tower::{KeyRequirement, Operation, OutcomeClass, Protection};

async fn shop() -> Shop {
    let more = |_: &_| {
        Router::new()
            .route("/identity", post(identity).get(identity))
            .route("/optional", get(optional).post(optional))
            .route("/ticket", post(ticket))
    };
    let protection = Protection { key: KeyRequirement::Optional, ..Protection::default() };
    Shop::built(|layer| layer.protect_writes(protection).unwrap(), more).await
}

async fn identity(operation: Operation, headers: HeaderMap) -> Response {
    operation.declare_resource("payment", "pay_1");
    operation.declare_schema_version("v3");
    if headers.contains_key("x-unreachable") {
        operation.declare_outcome(OutcomeClass::Retryable);
    }
    let (id, attempt) = (operation.id(), operation.attempt());
    let said =
        format!("{id} {attempt} {} {}", operation.downstream_key("charge"), operation.downstream_key("mail"));
    // The handler's word beats its answer's.
    let header =
        [("semel-outcome", "completed"), ("semel-resource", "other/1"), ("semel-schema-version", "v9")];
    (StatusCode::OK, header, said).into_response()
}

async fn optional(operation: Option<Operation>) -> String {
    operation.is_some().to_string()
}

async fn ticket(operation: Operation, headers: HeaderMap) -> &'static str {
    let ticket = operation.take_ticket().unwrap();
    assert!(operation.take_ticket().is_none());
    if headers.contains_key("x-drop") {
        drop(ticket);
        return "dropped";
    }
    let response = StoredResponse {
        status: 202,
        headers: vec![],
        body: Body::Stored("for retries".into()),
        schema_version: None,
    };
    ticket.finish(Outcome::Completed { response: Some(response), resource: None }).await.unwrap();
    "for the first"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_knows_its_operation_and_every_effect_has_the_same_identity_on_every_attempt() {
    let shop = shop().await;
    let ask = Ask::new("POST", "/identity").key(KEY);
    let first = shop.send(&ask.clone().header("x-unreachable", "1")).await;
    let second = shop.send(&ask).await;
    let words =
        |answer: &crate::support::Answer| answer.text().split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (first_words, second_words) = (words(&first), words(&second));
    assert_eq!((first_words[1].as_str(), second_words[1].as_str()), ("1", "2"));
    for place in [0, 2, 3] {
        assert_eq!(first_words[place], second_words[place]);
    }
    assert_ne!(first_words[2], first_words[3], "one identity per effect");
    assert_eq!(second.operation_id(), second_words[0]);
    assert!(shop.send(&ask).await.is_replay());
    let record = shop.record().await;
    assert_eq!(record.resource.unwrap().kind, "payment");
    assert_eq!(record.response.unwrap().schema_version.as_deref(), Some("v3"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_not_protected_has_no_operation() {
    let shop = shop().await;
    let needed = shop.send(&Ask::new("GET", "/identity")).await;
    assert_eq!(needed.status, 500, "a handler that needs one is set up wrongly");
    for (ask, there) in [
        (Ask::new("GET", "/optional").key(KEY), "false"),
        (Ask::new("POST", "/optional"), "false"),
        (Ask::new("POST", "/optional").key(KEY), "true"),
    ] {
        assert_eq!(shop.send(&ask).await.text(), there);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_may_finish_the_operation_itself() {
    let shop = shop().await;
    let ask = Ask::new("POST", "/ticket").key(KEY);
    let first = shop.send(&ask).await;
    assert_eq!((first.status, first.text()), (200, "for the first"));
    let retry = shop.send(&ask).await;
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (202, "for retries", true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_that_a_handler_takes_and_drops_is_unknown() {
    let shop = shop().await;
    let ask = Ask::new("POST", "/ticket").key(KEY).header("x-drop", "1");
    let first = shop.send(&ask).await;
    assert_eq!((first.status, &*first.code()), (504, "idempotency_outcome_unknown"), "whatever it said");
    shop.engine.drained().await;
    assert_eq!(shop.send(&ask).await.code(), "idempotency_outcome_unknown");
    assert_eq!(shop.record().await.state, State::Unknown);
}
