//! gRPC: calls happen once, and are replayed with their trailers; refusals are statuses.

mod calls;

use crate::support::KEY;
use calls::{Ended, Shop, answer, body, call, complete_inside, fields, framed};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt as _;
use semel::{InFlight, Policy, State};
use semel_tower::{Body, KeptHeaders, KeyRequirement, Protection};
use std::sync::Arc;
use std::time::Duration;

/// Fields that a service says.
type Lines = &'static [(&'static str, &'static str)];

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_executed_once_and_replayed_with_its_trailers() {
    let trailers = &[
        ("grpc-status", "0"),
        ("grpc-message", "fine"),
        ("semel-resource", "payment/pay_1"),
        ("x-cost", "7"),
    ];
    let shop = Shop::with_trailers(trailers).await;
    let first = shop.pay().await;
    assert_eq!((&first.body, first.is_replay()), (&framed("effect 1"), false));
    let told = &[("grpc-status", "0"), ("grpc-message", "fine"), ("x-cost", "7")];
    assert_eq!(first.trailers, Some(fields(told)), "all of them but what is for the layer alone");

    let replay = shop.pay().await;
    assert_eq!((&replay.body, replay.is_replay(), shop.executions()), (&first.body, true, 1));
    assert_eq!(replay.trailers, Some(fields(&told[..2])), "what is on the list");
    assert_eq!(replay.head["content-type"], "application/grpc");

    let record = shop.records().await.remove(0);
    assert_eq!((record.state, record.resource.unwrap().id.as_str()), (State::Completed, "pay_1"));
    let stored = record.response.unwrap();
    let names: Vec<_> = stored.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "trailer:grpc-status", "trailer:grpc-message"]);
    for name in &names[1..] {
        assert!(http::HeaderName::try_from(*name).is_err(), "another program takes it for damage: {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_that_is_to_be_kept_is_kept_where_it_stood() {
    let names = ["x-head", "x-cost"].map(|name| name.parse().unwrap());
    let kept_headers = KeptHeaders::default().and(names).unwrap();
    let protection = Protection { kept_headers, ..Protection::default() };
    let shop = Shop::answering(
        |layer| layer.protect_writes(protection).unwrap(),
        |_, _| async {
            let mut response = answer(&["done"], &[("grpc-status", "0"), ("x-cost", "7")]).await;
            response.headers_mut().extend(fields(&[("x-head", "1"), ("grpc-encoding", "identity")]));
            Ok(response)
        },
    );
    let shop = shop.await;
    shop.pay().await;
    let replay = shop.pay().await;
    assert_eq!(replay.trailers, Some(fields(&[("x-cost", "7"), ("grpc-status", "0")])));
    assert_eq!(
        (&replay.head["x-head"], &replay.head["grpc-encoding"]),
        (&"1".parse().unwrap(), &"identity".parse().unwrap())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_nothing_but_its_end_is_replayed_as_such() {
    let shop = Shop::answering(
        |layer| layer,
        |_, _| async {
            let mut response = Response::new(Body::empty());
            let head =
                [("content-type", "application/grpc"), ("grpc-status", "5"), ("grpc-message", "no%20such")];
            *response.headers_mut() = fields(&head);
            Ok(response)
        },
    )
    .await;
    for replayed in [false, true] {
        let ended = shop.pay().await;
        assert_eq!((ended.is_replay(), ended.status()), (replayed, "5"));
        assert_eq!((ended.field("grpc-message"), ended.trailers.as_ref()), (Some("no%20such"), None));
    }
    assert_eq!(shop.records().await.remove(0).state, State::FailedReplayable);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_call_decides_and_not_that_of_http() {
    // What the service says, the state, and what a retry gets.
    let cases: [(Lines, Option<State>, &str); 11] = [
        (&[("grpc-status", "0")], Some(State::Completed), "0"),
        (&[("grpc-status", "6")], Some(State::FailedReplayable), "6"),
        (&[("grpc-status", "9")], Some(State::FailedReplayable), "9"),
        (&[("grpc-status", "3")], None, "3"),
        (&[("grpc-status", "16")], None, "16"),
        (&[("grpc-status", "8")], Some(State::Unknown), "14"),
        (&[("grpc-status", "14")], Some(State::Unknown), "14"),
        (&[("grpc-status", "99")], Some(State::Unknown), "14"),
        (&[("grpc-status", "0"), ("grpc-status", "0")], Some(State::Unknown), "14"),
        (&[("x-other", "0")], Some(State::Unknown), "14"),
        (&[("grpc-status", "8"), ("semel-outcome", "retryable")], Some(State::FailedRetryable), "8"),
    ];
    for (trailers, state, status) in cases {
        let shop = Shop::with_trailers(trailers).await;
        let first = shop.pay().await;
        assert_eq!(first.status(), status, "{trailers:?}");
        let left: Vec<_> = shop.records().await.iter().map(|record| record.state).collect();
        assert_eq!(left, Vec::from_iter(state), "{trailers:?}");
        let retry = shop.pay().await;
        assert_eq!(retry.status(), status, "{trailers:?}");
        let executes_again = matches!(state, None | Some(State::FailedRetryable));
        assert_eq!(shop.executions(), 1 + u32::from(executes_again), "{trailers:?}");
        if state == Some(State::Unknown) {
            assert!(
                first.says("14", "IDEMPOTENCY_OUTCOME_UNKNOWN")
                    && retry.says("14", "IDEMPOTENCY_OUTCOME_UNKNOWN")
            );
            assert!(first.details().contains("unknown") && first.details().contains("RetryInfo"));
            assert_eq!(first.field("grpc-retry-pushback-ms"), Some("2000"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_fails_leaves_doubt() {
    let shop = Shop::answering(|layer| layer, |_, _| async { Err("as told".into()) }).await;
    assert!(shop.pay().await.says("14", "IDEMPOTENCY_OUTCOME_UNKNOWN"));
    let half = Shop::answering(
        |layer| layer,
        |_, _| async {
            let (frames, body) = body();
            frames.send(Ok(Frame::data(framed("half")))).await?;
            frames.send(Err("broken off".into())).await?;
            Ok(Response::new(body))
        },
    )
    .await;
    assert!(half.pay().await.says("14", "IDEMPOTENCY_OUTCOME_UNKNOWN"));
    assert_eq!(half.records().await.remove(0).state, State::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_the_bytes_of_its_message() {
    let shop = Shop::with_trailers(&[("grpc-status", "0")]).await;
    shop.pay().await;
    let changed = shop.send(call(framed("11.00"))).await;
    assert!(changed.says("9", "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_PAYLOAD"), "{changed:?}");
    assert_eq!(
        (changed.field("grpc-retry-pushback-ms"), &changed.head["content-type"]),
        (Some("-1"), &"application/grpc".parse().unwrap())
    );
    // JSON that says the same in other words is another message: what protocol buffers make of it is not known here.
    for (text, status) in [(r#"{"a":1,"b":2}"#, "0"), (r#"{"b":2,"a":1}"#, "9")] {
        let mut json = call(framed(text));
        json.headers_mut().insert("content-type", "application/grpc+json".parse().unwrap());
        json.headers_mut().insert("idempotency-key", "key-of-the-call-in-json".parse().unwrap());
        assert_eq!(shop.send(json).await.status(), status, "{text}");
    }
    assert_eq!(shop.executions(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_key_is_an_invalid_argument() {
    let shop = Shop::with_trailers(&[("grpc-status", "0")]).await;
    for (key, reason) in [(None, "IDEMPOTENCY_KEY_MISSING"), (Some("short"), "IDEMPOTENCY_KEY_INVALID")] {
        let mut request = call(framed("10.00"));
        request.headers_mut().remove("idempotency-key");
        request
            .headers_mut()
            .extend(fields(&key.map(|key| ("idempotency-key", key)).into_iter().collect::<Vec<_>>()));
        let refused = shop.send(request).await;
        assert!(refused.says("3", reason), "{refused:?}");
        assert!(refused.details().contains("safe_new_key"));
    }
    assert_eq!(shop.executions(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_exactly_one_message_is_refused_before_anything_is_executed() {
    let shop = Shop::with_trailers(&[("grpc-status", "0")]).await;
    let whole = framed("10.00");
    for (sent, status) in [(whole.slice(..0), "3"), (whole.slice(..3), "3"), (whole.slice(..8), "3")] {
        assert_eq!(shop.send(call(sent)).await.status(), status);
    }
    // Its sender waits for the answer before it says more: the second message alone decides.
    let (frames, open) = body();
    frames.send(Ok(Frame::data(whole.clone()))).await.unwrap();
    frames.send(Ok(Frame::data(whole.slice(..1)))).await.unwrap();
    let refused = shop.send(call(open)).await;
    assert!(refused.says("12", "NOT_IMPLEMENTED"), "{refused:?}");
    drop(frames);
    let long = shop.send(call(framed(&"x".repeat(2 << 20)))).await;
    assert!(long.says("8", "IDEMPOTENCY_REQUEST_TOO_LARGE"));
    assert_eq!((shop.executions(), shop.records().await.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streaming_call_without_a_key_passes_as_it_comes() {
    let protection = Protection { key: KeyRequirement::Optional, ..Protection::default() };
    let shop = Shop::answering(
        |layer| layer.protect_writes(protection).unwrap(),
        |_, request: Request<Body>| async { Ok(Response::new(request.into_body())) },
    )
    .await;
    let (frames, open) = body();
    let mut request = call(open);
    request.headers_mut().remove("idempotency-key");
    let mut answers = shop.begin(request).await.into_body();
    for message in ["first", "second"] {
        frames.send(Ok(Frame::data(framed(message)))).await.unwrap();
        let echoed = answers.frame().await.unwrap().unwrap();
        assert_eq!(echoed.into_data().unwrap(), framed(message), "before the next is sent");
    }
    frames.send(Ok(Frame::trailers(fields(&[("grpc-status", "0")])))).await.unwrap();
    drop(frames);
    assert_eq!(answers.collect().await.unwrap().trailers(), Some(&fields(&[("grpc-status", "0")])));
}

/// A service that has begun to answer with one message, and whose other frames a test sends.
async fn half_answered(timeout: Duration) -> (Shop, calls::Frames, Response<Body>) {
    let protection = Protection { timeout, ..Protection::default() };
    let (frames, open) = body();
    let open = Arc::new(std::sync::Mutex::new(Some(open)));
    let shop = Shop::answering(
        |layer| layer.protect_writes(protection).unwrap(),
        move |_, _| {
            let body = open.lock().unwrap().take();
            async { Ok(Response::new(body.ok_or("only once")?)) }
        },
    )
    .await;
    for message in ["first", "second"] {
        frames.send(Ok(Frame::data(framed(message)))).await.unwrap();
    }
    let response = shop.begin(call(framed("10.00"))).await;
    (shop, frames, response)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_message_of_an_answer_is_passed_on_and_the_answer_not_stored() {
    let (shop, frames, mut response) = half_answered(Duration::from_secs(20)).await;
    for message in ["first", "second"] {
        let frame = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), framed(message), "before the call has ended");
    }
    let meanwhile = shop.pay().await;
    assert!(meanwhile.says("14", "IDEMPOTENCY_KEY_IN_PROGRESS"), "{meanwhile:?}");
    frames.send(Ok(Frame::trailers(fields(&[("grpc-status", "0")])))).await.unwrap();
    drop(frames);
    assert_eq!(Ended::of(response).await.trailers, Some(fields(&[("grpc-status", "0")])));
    let retry = shop.pay().await;
    assert!(retry.says("6", "IDEMPOTENCY_RESPONSE_NOT_STORED"), "{retry:?}");
    assert_eq!((shop.executions(), shop.records().await.remove(0).state), (1, State::Completed));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_several_messages_that_breaks_off_ends_in_doubt() {
    let (shop, frames, response) = half_answered(Duration::from_secs(20)).await;
    frames.send(Err("broken off".into())).await.unwrap();
    let ended = Ended::of(response).await;
    assert_eq!((ended.status(), ended.body.len()), ("14", framed("firstsecond").len() + 5));
    assert!(ended.details().contains("IDEMPOTENCY_OUTCOME_UNKNOWN"));
    assert_eq!(shop.records().await.remove(0).state, State::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_several_messages_that_takes_too_long_is_in_doubt_until_it_ends() {
    let (shop, frames, response) = half_answered(Duration::from_millis(300)).await;
    assert_eq!(Ended::of(response).await.status(), "14");
    assert_eq!(shop.records().await.remove(0).state, State::Unknown);
    frames.send(Ok(Frame::trailers(fields(&[("grpc-status", "0")])))).await.unwrap();
    drop(frames);
    // It is written down by a task that nobody waits for.
    let settled = async {
        while shop.records().await.remove(0).state != State::Completed {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.unwrap();
    assert_eq!(shop.pay().await.status(), "6");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_is_passed_on_with_its_end() {
    let protection = Protection { max_stored_response: 100, ..Protection::default() };
    let shop = Shop::answering(
        |layer| layer.protect_writes(protection).unwrap(),
        |_, _| async { Ok(answer(&[&"x".repeat(1000)], &[("grpc-status", "0")]).await) },
    )
    .await;
    let first = shop.pay().await;
    assert_eq!((first.body.len(), first.status()), (1005, "0"));
    assert_eq!(shop.pay().await.status(), "6");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_was_stored_by_the_handlers_transaction_has_its_trailers() {
    let directory = tempfile::tempdir().unwrap();
    let store = semel_sqlite::SqliteStore::open(directory.path().join("shop.db")).await.unwrap();
    let inner = store.clone();
    let shop = Shop::answering(
        |_| semel_tower::IdempotencyLayer::new(store),
        move |_, request| complete_inside(inner.clone(), request),
    )
    .await;
    for replayed in [false, true] {
        let ended = shop.pay().await;
        assert_eq!((&ended.body, ended.is_replay()), (&framed("stored"), replayed));
        assert_eq!(ended.trailers, Some(fields(&[("grpc-status", "0"), ("grpc-message", "fine")])));
    }
    assert_eq!(shop.executions(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_progress_is_unavailable_even_where_http_would_say_accepted() {
    let policy = Policy { in_flight: InFlight::Accepted, ..Policy::default() };
    let protection = Protection { policy: Arc::new(policy), ..Protection::default() };
    let gate = crate::support::Gate::new();
    let held = Arc::clone(&gate);
    let shop = Shop::answering(
        |layer| layer.protect_writes(protection).unwrap(),
        move |_, _| {
            let held = Arc::clone(&held);
            async move {
                held.pass().await;
                Ok(answer(&["done"], &[("grpc-status", "0")]).await)
            }
        },
    )
    .await;
    let shop = Arc::new(shop);
    let first = tokio::spawn({
        let shop = Arc::clone(&shop);
        async move { shop.pay().await }
    });
    gate.reached().await;
    let second = shop.pay().await;
    assert!(second.says("14", "IDEMPOTENCY_KEY_IN_PROGRESS"), "{second:?}");
    assert_eq!(second.field("grpc-retry-pushback-ms"), Some("1000"));
    gate.open();
    assert_eq!(first.await.unwrap().status(), "0");
    assert!(shop.pay().await.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_call_is_answered_as_ever() {
    let shop = Shop::with_trailers(&[("grpc-status", "0")]).await;
    let mut web = call(framed("10.00"));
    web.headers_mut().insert("content-type", "application/grpc-web".parse().unwrap());
    web.headers_mut().remove("idempotency-key");
    let refused = shop.begin(web).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["content-type"]),
        (400, &"application/problem+json".parse().unwrap())
    );
    assert!(KEY.len() >= 16);
}
