//! A page of another origin can read every answer that it may read: first answers, replays, refusals and what passes. What the service
//! says of it does not matter.

use crate::support::configured::Configured;
use crate::support::http2::{Http2, payment};
use crate::support::{Answer, Ask, KEY, Service};
use semel_gateway::{Config, GatewayProcess};

const APP: &str = "https://app.example";
const CORS: &str = "[cors]\nallow_origins = [\"https://app.example\", \"http://localhost:3000\"]\n";
const EXPOSED: &str = "idempotent-replayed, semel-operation-id, retry-after, location, etag, link, \
                       idempotency-key-expires, original-request-id";

fn from(ask: Ask, origin: &str) -> Ask {
    ask.field(&format!("Origin: {origin}"))
}

fn preflight(origin: &str) -> Ask {
    from(Ask::new("OPTIONS /payments"), origin)
        .field("Access-Control-Request-Method: POST")
        .field("Access-Control-Request-Headers: content-type,idempotency-key")
}

/// All that an answer says of origins.
fn said(answer: &Answer) -> Vec<(&str, &str)> {
    let said =
        answer.headers.iter().filter(|(name, _)| name == "vary" || name.starts_with("access-control-"));
    said.map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[track_caller]
fn may_be_read(answer: &Answer) {
    let mut said = said(answer);
    said.sort_unstable();
    let expected = [
        ("access-control-allow-origin", APP),
        ("access-control-expose-headers", EXPOSED),
        ("vary", "Origin"),
    ];
    assert_eq!(said, expected, "{answer:?}");
}

#[track_caller]
fn may_not_be_read(answer: &Answer) {
    assert_eq!(said(answer), [("vary", "Origin")], "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preflight_is_answered_here() {
    let service = Service::start();
    let gateway = Configured::before(&service, CORS).await;
    let allowed = gateway.send(&preflight(APP)).await;
    assert_eq!((allowed.status, allowed.body.len()), (204, 0));
    let mut told = said(&allowed);
    told.sort_unstable();
    assert_eq!(
        told,
        [
            ("access-control-allow-headers", "content-type, authorization, idempotency-key"),
            ("access-control-allow-methods", "GET, HEAD, POST, PATCH"),
            ("access-control-allow-origin", APP),
            ("access-control-max-age", "600"),
            ("vary", "Origin"),
        ]
    );
    for other in ["https://evil.example", "https://app.example:443", "https://app.example.evil", "null"] {
        let refused = gateway.send(&preflight(other)).await;
        assert_eq!(refused.status, 204);
        may_not_be_read(&refused);
    }
    assert_eq!(service.executed(), 0);
    // What is no preflight is the service's to answer.
    for ask in [Ask::new("OPTIONS /payments"), from(Ask::new("OPTIONS /payments"), APP)] {
        gateway.send(&ask.field("X-Status: 200")).await;
    }
    assert_eq!(service.executed(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_pages_may_send_is_as_the_file_says() {
    let service = Service::start();
    let routes = "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n";
    let gateway = Configured::before(&service, &format!("{CORS}{routes}")).await;
    let told = gateway.send(&preflight(APP)).await;
    assert_eq!(told.header("access-control-allow-methods"), Some("GET, HEAD, POST"));
    let own = "allow_methods = [\"POST\", \"DELETE\"]\nallow_headers = [\"X-Mine\"]\nallow_credentials = true\n\
               max_age = \"1h\"\n";
    let gateway = Configured::before(&service, &format!("{CORS}{own}")).await;
    let told = gateway.send(&preflight(APP)).await;
    for (name, value) in [
        ("access-control-allow-methods", "POST, DELETE"),
        ("access-control-allow-headers", "x-mine"),
        ("access-control-allow-credentials", "true"),
        ("access-control-max-age", "3600"),
        ("access-control-allow-origin", APP),
    ] {
        assert_eq!(told.all(name), [value]);
    }
    let paid = gateway.send(&from(Ask::payment(), APP)).await;
    assert_eq!(paid.all("access-control-allow-credentials"), ["true"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_origin_may_be_allowed_and_the_answer_is_the_same_for_all() {
    let service = Service::start();
    let gateway = Configured::of_profile(&service, "stripe", "[cors]\nallow_origins = [\"*\"]").await;
    for origin in [APP, "null"] {
        let paid = gateway.send(&from(Ask::payment(), origin)).await;
        assert_eq!(paid.all("access-control-allow-origin"), ["*"]);
        let exposed = paid.header("access-control-expose-headers").unwrap();
        assert_eq!(exposed, format!("{EXPOSED}, request-id, original-request"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_answers_replays_and_what_passes_can_be_read_whatever_the_service_says() {
    let service = Service::start();
    let gateway = Configured::before(&service, CORS).await;
    let said_by_service = |ask: Ask| {
        ask.field("X-Header: Access-Control-Allow-Origin: *")
            .field("X-Header: access-control-allow-credentials: true")
    };
    for _ in 0..2 {
        may_be_read(&gateway.send(&said_by_service(from(Ask::payment(), APP))).await);
    }
    let other = gateway.send(&said_by_service(from(Ask::payment(), "https://evil.example"))).await;
    assert!(other.is_replay(), "the origin is no part of the fingerprint");
    may_not_be_read(&other);
    may_be_read(&gateway.send(&said_by_service(from(Ask::new("GET /"), APP))).await);
    let contract = gateway.send(&from(Ask::new("GET /.well-known/idempotency"), APP)).await;
    assert_eq!(
        (contract.all("access-control-allow-origin"), contract.all("vary")),
        (vec![APP], vec!["Accept", "Origin"])
    );
    may_not_be_read(&gateway.send(&said_by_service(Ask::new("GET /"))).await);
    for (varies, expected) in [
        ("accept-encoding, ORIGIN", vec!["accept-encoding, ORIGIN"]),
        ("Accept", vec!["Accept", "Origin"]),
        ("*", vec!["*"]),
    ] {
        let ask = from(Ask::new("GET /"), APP).field(&format!("X-Header: Vary: {varies}"));
        assert_eq!(gateway.send(&ask).await.all("vary"), expected);
    }
    let http2 = Http2::connect(gateway.address).await;
    let mut over_http2 = payment();
    over_http2.headers_mut().insert("origin", http::HeaderValue::from_static(APP));
    may_be_read(&http2.send(over_http2).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_every_layer_can_be_read() {
    let mut service = Service::start();
    let rest = "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\nmax_request_body = \"1KiB\"\nmax_stored_response = \"1KiB\"\n\
                [[route]]\noperation = \"slow\"\nmatch = \"POST /slow\"\nin_flight = \"accepted\"\n\
                [quota]\nlive_keys = 7\n[limits]\npass_through_body = \"2KiB\"\n";
    let gateway = Configured::before(&service, &format!("{CORS}{rest}")).await;
    let pay = |key: &str| from(Ask::payment(), APP).key(key);
    let slow = |key: &str| from(Ask::new("POST /slow").body("{}"), APP).key(key);
    let mut met = Vec::new();
    let mut meets = |answer: Answer, status: u16| {
        may_be_read(&answer);
        assert_eq!(answer.status, status, "{answer:?}");
        if answer.header("link").is_some() && answer.status != 202 {
            met.push(answer.code().replace("idempotency_", ""));
        }
    };
    meets(gateway.send(&from(Ask::payment().without("Idempotency-Key"), APP)).await, 400);
    meets(gateway.send(&pay("short")).await, 400);
    meets(gateway.send(&pay("key-of-a-large-request").body("x".repeat(2000))).await, 413);
    meets(gateway.send(&pay(KEY)).await, 201);
    meets(gateway.send(&pay(KEY).body("{}")).await, 422);
    for status in [201, 409] {
        meets(gateway.send(&pay("key-of-a-large-answer").field("X-Length: 2000")).await, status);
    }
    for status in [504, 409] {
        meets(gateway.send(&pay("key-of-a-broken-answer").field("X-Hang-Up: 1")).await, status);
    }
    let (mut held, mut held_slow) = (gateway.connect().await, gateway.connect().await);
    held.write(pay("key-of-a-held-request").field("X-Wait: go").bytes()).await;
    held_slow.write(slow("key-of-a-held-request").field("X-Wait: go").bytes()).await;
    service.has_executed(5).await;
    meets(gateway.send(&pay("key-of-a-held-request")).await, 409);
    meets(gateway.send(&slow("key-of-a-held-request")).await, 202);
    service.let_go("go");
    meets(held.answer().await, 201);
    meets(held_slow.answer().await, 201);
    for (line, status) in [("POST /a%00b", 400), ("POST /Payments", 400), ("CONNECT host:443", 501)] {
        meets(gateway.send(&from(Ask::new(line), APP)).await, status);
    }
    meets(gateway.send(&from(Ask::new("PUT /large").body("x".repeat(3000)), APP)).await, 413);
    meets(gateway.send(&from(Ask::new("GET /").field("X-Hang-Up: 1"), APP)).await, 502);
    service.kill();
    meets(gateway.send(&pay("key-of-a-service-that-is-down")).await, 502);
    met.sort_unstable();
    assert_eq!(
        met,
        [
            "key_in_progress",
            "key_invalid",
            "key_missing",
            "key_reused_with_different_payload",
            "outcome_unknown",
            "outcome_unknown",
            "request_too_large",
            "response_not_stored",
            "upstream_unreachable",
        ]
    );

    let service = Service::start();
    let scope = "[scope]\ntenant = [\"header:x-account\"]\n[quota]\nlive_keys = 1\n";
    let gateway = Configured::before(&service, &format!("{CORS}{scope}")).await;
    let ann = |key: &str| pay(key).field("X-Account: ann");
    let nobody = gateway.send(&pay(KEY)).await;
    assert_eq!(nobody.status, 401);
    may_be_read(&nobody);
    may_be_read(&gateway.send(&ann(KEY)).await);
    // The store is asked from time to time: within it a few more may be let through.
    let mut number = 0;
    let over = loop {
        number += 1;
        let answer = gateway.send(&ann(&format!("key-{number:0>20}"))).await;
        may_be_read(&answer);
        if answer.status != 201 {
            break answer;
        }
    };
    assert_eq!(over.code(), "idempotency_quota_exceeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_changes_whose_pages_may_read() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.toml");
    let text = |cors: &str| {
        format!(
            "upstream = \"http://127.0.0.1:{}\"\nlisten = \"127.0.0.1:0\"\nstore = \"memory:\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n{cors}",
            service.port
        )
    };
    std::fs::write(&file, text(CORS)).unwrap();
    let running =
        GatewayProcess::start(Config::from_file(&file).unwrap()).await.unwrap().reading(file.clone());
    let (gateway, reload) = (Configured { address: running.address() }, running.reload());
    tokio::spawn(running.serve(std::future::pending(), std::future::pending()));
    let mut kept = gateway.connect().await;
    may_be_read(&kept.send(&from(Ask::payment(), APP)).await);
    std::fs::write(&file, text(&CORS.replace("app.example", "other.example"))).unwrap();
    reload.now().await.unwrap();
    let replay = kept.send(&from(Ask::payment(), APP)).await;
    assert!(replay.is_replay());
    may_not_be_read(&replay);
    std::fs::write(&file, text("")).unwrap();
    reload.now().await.unwrap();
    assert_eq!(said(&kept.send(&from(Ask::payment(), APP)).await), [], "the service answers for itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_cors_replays_repeat_what_the_service_said_to_the_same_origin() {
    let service = Service::start();
    let gateway = Configured::before(&service, "").await;
    let ask = |origin| {
        from(Ask::payment(), origin)
            .field(&format!("X-Header: Access-Control-Allow-Origin: {APP}"))
            .field("X-Header: Vary: Origin")
    };
    let expected = vec![("access-control-allow-origin", APP), ("vary", "Origin")];
    for _ in 0..2 {
        assert_eq!(said(&gateway.send(&ask(APP)).await), expected);
    }
    let other = gateway.send(&ask("https://other.example")).await;
    assert!(other.is_replay() && said(&other).is_empty(), "{other:?}");
    // Settings of the service's framework are the service's: the gateway asks it.
    let passed = gateway.send(&preflight(APP).field("X-Status: 204")).await;
    assert_eq!((passed.status, service.executed()), (204, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_about_a_known_key_say_until_when_and_of_which_request_they_are() {
    let service = Service::start();
    let gateway = Configured::before(&service, "").await;
    let pay = || Ask::payment().field("Content-Type: application/json");
    let first =
        gateway.send(&pay().field("X-Request-Id: first").field("X-Header: Original-Request-Id: x")).await;
    let until = first.header("idempotency-key-expires").unwrap().to_owned();
    assert_eq!(first.header("original-request-id"), None);
    let http2 = Http2::connect(gateway.address).await;
    for retry in [gateway.send(&pay()).await, http2.send(payment()).await] {
        assert!(retry.is_replay());
        assert_eq!(retry.all("original-request-id"), ["first"]);
        assert_eq!(retry.all("idempotency-key-expires"), [until.as_str()]);
    }
    let other = || payment().map(|_| "{}");
    for reused in [gateway.send(&pay().body("{}")).await, http2.send(other()).await] {
        assert_eq!((reused.status, reused.all("idempotency-key-expires")), (422, vec![until.as_str()]));
    }
}
