//! gRPC on routes that are protected: calls are executed once, replayed with their trailers, and refused by statuses.

use crate::support::configured::Configured;
use crate::support::http2::{Http2, next, whole};
use crate::support::{Answer, Front, KEY, Setting};
use bytes::Bytes;
use h2::server;
use http::{HeaderMap, Request, Response};
use semel::transition::{About, Evidence, Settlement, Windows};
use semel::{Actor, Owner, Policy, State};
use semel_tower::{KeyRequirement, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use tokio::net::TcpListener;

const METHOD: &str = "http://shop.example/shop.Payments/Create";

/// A message as it lies in a body.
fn framed(message: &str) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0][..], &length, message.as_bytes()].concat().into()
}

fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

/// A service that makes payments, and breaks off after the effect where it is asked to.
struct Payments {
    port: u16,
    effects: Arc<AtomicU32>,
}

impl Payments {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let effects = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&effects);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                tokio::spawn(async move {
                    let mut connection = server::handshake(stream).await.unwrap();
                    while let Some(Ok((request, answer))) = connection.accept().await {
                        tokio::spawn(serve(request, answer, Arc::clone(&counted)));
                    }
                });
            }
        });
        Self { port, effects }
    }

    fn effects(&self) -> u32 {
        self.effects.load(SeqCst)
    }
}

async fn serve(
    request: Request<h2::RecvStream>,
    mut answer: server::SendResponse<Bytes>,
    effects: Arc<AtomicU32>,
) {
    assert_eq!(request.headers()["te"], "trailers", "without it a service may not send trailers");
    if request.headers().contains_key("semel-operation-id") {
        assert_eq!(request.headers()["grpc-accept-encoding"], "identity");
    }
    let breaks_off = request.headers().contains_key("x-break-off");
    let mut messages = request.into_body();
    while next(&mut messages).await.is_some() {}
    let number = effects.fetch_add(1, SeqCst) + 1;
    if breaks_off {
        return answer.send_reset(h2::Reason::INTERNAL_ERROR);
    }
    let head = Response::builder().header("content-type", "application/grpc").body(()).unwrap();
    let mut answers = answer.send_response(head, false).unwrap();
    answers.send_data(framed(&format!("effect {number}")), false).unwrap();
    let end = [("grpc-status", "0"), ("grpc-message", "fine"), ("semel-resource", "payment/pay_1")];
    answers.send_trailers(fields(&end)).unwrap();
}

fn call() -> http::request::Builder {
    Request::post(METHOD)
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .header("grpc-accept-encoding", "gzip, identity")
        .header("idempotency-key", KEY)
}

/// What a caller got: an answer, and its trailers.
type Called = (Answer, Option<HeaderMap>);

async fn send(front: &Front, call: http::request::Builder, message: &str) -> Called {
    send_to(front.address, call, message).await
}

async fn send_to(address: std::net::SocketAddr, call: http::request::Builder, message: &str) -> Called {
    let client = Http2::connect(address).await;
    let (answering, mut stream) = client.begin(call.body(()).unwrap(), false).await;
    stream.send_data(framed(message), true).unwrap();
    whole(answering).await
}

/// Checks that it is a refusal as gRPC has them, with this status, and details that hold these words.
#[track_caller]
fn assert_refused((answer, trailers): &Called, status: &str, words: &[&str]) {
    assert_eq!((answer.status, answer.header("grpc-status")), (200, Some(status)), "{answer:?}");
    assert_eq!((answer.body.len(), trailers), (0, &None), "it is nothing but its head");
    assert_eq!(answer.header("content-type"), Some("application/grpc"));
    assert!(!answer.header("grpc-message").unwrap().is_empty());
    let details = answer.header("grpc-status-details-bin").unwrap();
    use base64::Engine as _;
    let details = base64::engine::general_purpose::STANDARD_NO_PAD.decode(details).unwrap();
    let details = String::from_utf8_lossy(&details);
    for word in words {
        assert!(details.contains(word), "{word}: {details}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_executed_once_and_replayed_with_its_trailers() {
    let payments = Payments::start().await;
    let front = Setting::default().http2().before_port(payments.port).await;
    let (first, trailers) = send(&front, call(), "10.00").await;
    assert_eq!((first.status, first.body.as_slice()), (200, &framed("effect 1")[..]));
    let told = Some(fields(&[("grpc-status", "0"), ("grpc-message", "fine")]));
    assert_eq!(trailers, told, "what the service says to the gateway stays with it");
    assert_eq!(front.record().await.resource.unwrap().id, "pay_1");
    let (replay, trailers) = send(&front, call(), "10.00").await;
    assert!(replay.is_replay());
    assert_eq!((replay.body, trailers, payments.effects()), (first.body, told, 1));
    assert_refused(
        &send(&front, call(), "11.00").await,
        "9",
        &[
            "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD",
            "google.rpc.ErrorInfo",
            "safe_new_key",
            "completed",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_breaks_off_after_the_effect_leaves_doubt_that_is_settled_with_trailers() {
    let payments = Payments::start().await;
    let front = Setting::default().http2().before_port(payments.port).await;
    let breaking = || call().header("x-break-off", "1");
    for attempt in ["first", "retry"] {
        let called = send(&front, breaking(), "10.00").await;
        assert_refused(&called, "14", &["IDEMPOTENCY_OUTCOME_UNKNOWN", "google.rpc.RetryInfo", "unknown"]);
        assert!(called.0.header("grpc-retry-pushback-ms").is_some(), "{attempt}");
    }
    let record = front.record().await;
    assert_eq!((record.state, payments.effects()), (State::Unknown, 1));
    let (response, resource) = Reply::grpc(b"effect 1").into_parts();
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence: Evidence::Completed { response: Some(response), resource },
        note: None,
        windows: Windows::from(&Policy::default()),
    };
    front.engine.settle(&About::of(&record), &settlement).await.unwrap();
    let (replay, trailers) = send(&front, breaking(), "10.00").await;
    assert_eq!((replay.is_replay(), replay.body.as_slice()), (true, &framed("effect 1")[..]));
    assert_eq!((trailers, payments.effects()), (Some(fields(&[("grpc-status", "0")])), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streaming_call_with_a_key_is_refused_before_the_service_sees_it() {
    let payments = Payments::start().await;
    let front = Setting::default().http2().before_port(payments.port).await;
    let client = Http2::connect(front.address).await;
    let (answering, mut stream) = client.begin(call().body(()).unwrap(), false).await;
    stream.send_data(framed("first"), false).unwrap();
    stream.send_data(framed("second"), false).unwrap();
    // The client does not say that this was all.
    assert_refused(&whole(answering).await, "12", &["NOT_IMPLEMENTED"]);
    assert_eq!((payments.effects(), front.records().await.len()), (0, 0));
    drop(stream);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_refuses_it_refuses_by_a_status() {
    let payments = Payments::start().await;
    let required =
        |setting: Setting| setting.protection(|protection| protection.key = KeyRequirement::Required);
    let front = required(Setting::default().http2()).before_port(payments.port).await;
    let without_key =
        Request::post(METHOD).header("te", "trailers").header("content-type", "application/grpc");
    assert_refused(&send(&front, without_key, "10.00").await, "3", &["IDEMPOTENCY_KEY_MISSING"]);
    let misspelt = call().header("idempotency_key", "another-key-of-16-characters");
    assert_refused(&send(&front, misspelt, "10.00").await, "3", &["BAD_REQUEST"]);

    // Nobody is there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let front = Setting::default().http2().before_port(port).await;
    assert_refused(
        &send(&front, call(), "10.00").await,
        "14",
        &["IDEMPOTENCY_UPSTREAM_UNREACHABLE", "operation_id"],
    );
    assert_eq!(front.record().await.state, State::FailedRetryable);
    let passed = Request::post(METHOD).header("content-type", "application/grpc+proto");
    assert_refused(&send(&front, passed, "10.00").await, "14", &["IDEMPOTENCY_UPSTREAM_UNREACHABLE"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_spoken_to_over_http_1_is_sent_no_calls() {
    let payments = Payments::start().await;
    let front = Setting::default().before_port(payments.port).await;
    assert_refused(&send(&front, call(), "10.00").await, "12", &["NOT_IMPLEMENTED"]);
    let passed = Request::post(METHOD).header("content-type", "application/grpc");
    assert_refused(&send(&front, passed, "10.00").await, "12", &["NOT_IMPLEMENTED"]);
    assert_eq!(payments.effects(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_protects_a_method_whatever_the_profile_and_says_what_its_statuses_mean() {
    let payments = Payments::start().await;
    let route = "[[route]]\noperation = \"create_payment\"\nmatch = \"POST /shop.Payments/Create\"\n\
                 [route.outcome]\nOK = \"unknown\"\n";
    let settings = "profile = \"stripe\"\nupstream_protocol = \"http2\"";
    let gateway = Configured::with(payments.port, settings, route).await;
    let called = send_to(gateway.address, call(), "10.00").await;
    assert_refused(&called, "14", &["IDEMPOTENCY_OUTCOME_UNKNOWN"]);
    assert_eq!(payments.effects(), 1);
}
