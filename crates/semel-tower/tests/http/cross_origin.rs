//! What a service says of origins holds for the page that asked first: a replay repeats it for that origin, and for no other.

use crate::support::{Answer, Ask, KEY, Shop};
use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse as _;
use axum::routing::post;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use semel_sqlite::SqliteStore;
use semel_tower::{KeptHeaders, Operation, Protection, Reply};

const APP: &str = "https://app.example";
const FIELDS: [&str; 3] = ["access-control-allow-origin", "access-control-expose-headers", "vary"];

/// A payment from a page, answered as services with CORS of their own answer.
fn from(origin: &str) -> Ask {
    Ask::payment()
        .header("origin", origin)
        .answered_with("access-control-allow-origin", origin)
        .answered_with("access-control-expose-headers", "location")
        .answered_with("vary", "Origin")
        .answered_with("vary", "Accept")
}

fn fields(answer: &Answer) -> Vec<Vec<&str>> {
    FIELDS.map(|name| answer.all(name)).into()
}

fn none() -> Vec<Vec<&'static str>> {
    vec![Vec::new(); FIELDS.len()]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_can_be_read_by_the_page_that_asked_first() {
    let shop = Shop::open().await;
    let (first, replay) = (shop.send(&from(APP)).await, shop.send(&from(APP)).await);
    assert!(replay.is_replay());
    assert_eq!(fields(&replay), fields(&first));
    assert_eq!(replay.all("vary"), ["Origin", "Accept"]);
    assert_eq!(replay.header("semel-origin"), None, "under this name it is kept, and never sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_origin_gets_the_answer_without_what_was_said_to_the_first() {
    let shop = Shop::open().await;
    let first = shop.send(&from(APP)).await;
    for other in ["https://evil.example", "http://app.example", "null"] {
        let replay = shop.send(&from(other)).await;
        assert!(replay.is_replay(), "the origin is no part of what makes two requests the same");
        assert_eq!((fields(&replay), &replay.body), (none(), &first.body), "{other}");
    }
    let several = shop.send(&from(APP).header("origin", APP)).await;
    assert_eq!(fields(&several), none());
    let nobodys_page = shop.send(&Ask::payment()).await;
    assert!(nobodys_page.is_replay() && fields(&nobodys_page) == none());
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sandboxed_page_was_told_is_told_to_no_other() {
    let shop = Shop::open().await;
    shop.send(&from("null")).await;
    for origin in ["null", APP] {
        let replay = shop.send(&from(origin)).await;
        assert!(replay.is_replay() && fields(&replay) == none(), "{replay:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_keeps_is_kept_whoever_asks() {
    let kept_headers = KeptHeaders::default().and([ACCESS_CONTROL_ALLOW_ORIGIN]).unwrap();
    let shop = Shop::protected(Protection { kept_headers, ..Protection::default() }).await;
    shop.send(&from("*").header("origin", APP)).await;
    let replay = shop.send(&from("https://other.example")).await;
    assert_eq!(fields(&replay), [vec!["*"], vec![], vec![]]);
}

/// A handler that stores its answer in its own transaction, with what it says of origins and the request.
async fn transfer(
    State(store): State<SqliteStore>,
    operation: Operation,
    headers: HeaderMap,
) -> axum::response::Response {
    let reply = Reply::json(StatusCode::CREATED, &serde_json::json!({ "id": 1 })).unwrap();
    let reply = match headers.get("origin") {
        Some(origin) => reply.header(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone()),
        None => reply,
    };
    let reply = reply
        .header(VARY, HeaderValue::from_static("Origin"))
        .header(HeaderName::from_static("original-request-id"), HeaderValue::from_static("made-up"));
    match operation.complete_with(&store, move |_| Ok::<_, StatusCode>(reply)).await {
        Ok(replayable) => replayable.into_response(),
        Err(error) => error.into_response(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_handlers_transaction_stored_is_replayed_by_the_same_rules() {
    let routes =
        |store: &SqliteStore| Router::new().route("/transfers", post(transfer)).with_state(store.clone());
    let shop = Shop::built(|layer| layer, routes).await;
    let ask = |origin: Option<&str>| {
        let ask = Ask::new("POST", "/transfers").key(KEY).json("{}").header("x-request-id", "the-first-one");
        match origin {
            Some(origin) => ask.header("origin", origin),
            None => ask,
        }
    };
    let first = shop.send(&ask(Some(APP))).await;
    assert_eq!((first.status, fields(&first)), (201, vec![vec![APP], vec![], vec!["Origin"]]));
    assert_eq!((first.header("original-request-id"), first.header("semel-origin")), (None, None));
    let same = shop.send(&ask(Some(APP))).await;
    assert!(same.is_replay());
    assert_eq!(fields(&same), fields(&first));
    for other in [Some("https://other.example"), Some("null"), None] {
        let replay = shop.send(&ask(other)).await;
        assert!(replay.is_replay() && fields(&replay) == none(), "{replay:?}");
        assert_eq!(replay.header("original-request-id"), Some("the-first-one"));
    }
}
