//! A replay is the first answer, byte for byte, with the headers that may be kept and none of the others.

use crate::support::{Ask, KEY, Shop};
use axum::Router;
use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use http::HeaderName;
use semel_tower::{KeptHeaders, Protection};

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_body_is_replayed_byte_for_byte() {
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(100_000).collect();
    let answered = bytes.clone();
    let more = |_: &_| {
        let answer = async move || {
            Response::builder()
                .status(201)
                .header("content-type", "image/png")
                .body(Body::from(answered.clone()))
                .unwrap()
        };
        Router::new().route("/binary", post(answer))
    };
    let shop = Shop::built(|layer| layer, more).await;
    let ask = Ask::new("POST", "/binary").key(KEY);
    let first = shop.send(&ask).await;
    let replay = shop.send(&ask).await;
    assert!(replay.is_replay() && !first.is_replay());
    assert_eq!(first.body, bytes);
    assert_eq!(replay.body, bytes);
    assert_eq!(
        (first.header("content-length"), replay.header("content-length")),
        (Some("100000"), Some("100000"))
    );
    assert_eq!(replay.header("content-type"), Some("image/png"));
}

#[tokio::test(flavor = "multi_thread")]
async fn safe_headers_are_replayed_and_others_go_to_the_first_client_alone() {
    const KEPT: [(&str, &str); 6] = [
        ("content-language", "de"),
        ("content-encoding", "identity"),
        ("location", "/payments/1"),
        ("etag", "\"v1\""),
        ("link", "</payments/1>; rel=\"self\""),
        ("link", "</payments/1/receipt>; rel=\"receipt\""),
    ];
    const FIRST_ALONE: [(&str, &str); 6] = [
        ("set-cookie", "session=1"),
        ("set-cookie", "csrf=2"),
        ("www-authenticate", "Bearer"),
        ("authentication-info", "nextnonce=1"),
        ("x-request-id", "req_1"),
        ("keep-alive", "timeout=5"),
    ];
    let shop = Shop::open().await;
    let ask = KEPT
        .iter()
        .chain(&FIRST_ALONE)
        .fold(Ask::payment(), |ask, (name, value)| ask.answered_with(name, value));
    let first = shop.send(&ask).await;
    let replay = shop.send(&ask).await;
    assert!(replay.is_replay());
    for (name, value) in KEPT {
        assert!(first.all(name).contains(&value), "{name}");
        assert_eq!(replay.all(name), first.all(name), "{name}");
    }
    assert_eq!(replay.all("link").len(), 2);
    for (name, value) in FIRST_ALONE {
        assert!(first.all(name).contains(&value), "{name}");
        assert_eq!(replay.header(name), None, "{name}");
    }
    assert_eq!((first.status, &first.body), (replay.status, &replay.body));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_may_keep_more_headers_but_never_cookies() {
    let kept_headers = KeptHeaders::default().and([HeaderName::from_static("x-request-id")]).unwrap();
    for never in [
        "set-cookie",
        "authorization",
        "connection",
        "semel-outcome",
        "content-length",
        "idempotent-replayed",
    ] {
        assert!(KeptHeaders::default().and([HeaderName::from_static(never)]).is_err(), "{never}");
    }
    let shop = Shop::protected(Protection { kept_headers, ..Protection::default() }).await;
    let ask = Ask::payment().answered_with("x-request-id", "req_1").answered_with("set-cookie", "session=1");
    shop.send(&ask).await;
    let replay = shop.send(&ask).await;
    assert_eq!((replay.header("x-request-id"), replay.header("set-cookie")), (Some("req_1"), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cannot_pass_its_first_answer_off_as_a_replay() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment().answered_with("idempotent-replayed", "true")).await;
    assert!(!first.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_replayed_as_it_was_stored_whatever_the_service_would_say_today() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment().answered_with("semel-schema-version", "v1")).await;
    let replay = shop.send(&Ask::payment().status(200).answered_with("semel-schema-version", "v2")).await;
    assert_eq!((replay.status, &replay.body), (201, &first.body));
    assert_eq!(shop.record().await.response.unwrap().schema_version.as_deref(), Some("v1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_replayed_as_an_empty_answer() {
    let shop = Shop::open().await;
    let ask = Ask::payment().status(204);
    let (first, replay) = (shop.send(&ask).await, shop.send(&ask).await);
    for answer in [&first, &replay] {
        assert_eq!((answer.status, answer.body.len()), (204, 0));
    }
    assert!(replay.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_is_no_text_is_replayed_as_it_was() {
    let more = |_: &_| {
        let answer = async || {
            let location = http::HeaderValue::from_bytes(b"/caf\xe9").unwrap();
            Response::builder().status(201).header("location", location).body(Body::empty()).unwrap()
        };
        Router::new().route("/latin", post(answer))
    };
    let shop = Shop::built(|layer| layer, more).await;
    let ask = Ask::new("POST", "/latin").key(KEY);
    let (first, replay) = (shop.send(&ask).await, shop.send(&ask).await);
    assert!(replay.is_replay());
    assert_eq!(first.header("location"), replay.header("location"));
    assert_eq!(shop.record().await.response.unwrap().headers[0].1.as_ref(), b"/caf\xe9");
}
