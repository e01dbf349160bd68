//! What the service's answers come to, and that retries get the same bytes.

use crate::support::{Answer, Ask, Front, KEY, Service, Setting};
use semel::State;

/// Without what is about one moment or one connection.
fn kept(answer: &Answer) -> Vec<(&str, &str)> {
    let kept = ["content-type", "content-encoding", "content-language", "location", "etag", "link"];
    let mut kept: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| kept.contains(&name.as_str()))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    kept.sort_unstable();
    kept
}

/// Sends it twice over fresh records: the retry is a replay of the same bytes.
async fn is_replayed(front: &Front, ask: &Ask, status: u16) -> Answer {
    let first = front.send(ask).await;
    assert_eq!((first.status, first.is_replay()), (status, false), "{first:?}");
    let retry = front.send(ask).await;
    assert_eq!((retry.status, retry.is_replay()), (status, true), "{retry:?}");
    assert_eq!(retry.body, first.body, "byte for byte");
    assert_eq!(kept(&retry), kept(&first));
    assert_eq!(retry.header("semel-operation-id"), first.header("semel-operation-id"));
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn every_final_status_is_replayed_byte_for_byte() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for (number, status) in [200, 201, 204, 302, 404, 409, 422, 500].into_iter().enumerate() {
        let ask = Ask::payment()
            .key(&format!("{KEY}-{status}"))
            .field(&format!("X-Status: {status}"))
            .field("X-Header: Location: /payments/1")
            .field("X-Header: ETag: \"1\"");
        let first = is_replayed(&front, &ask, status).await;
        assert_eq!(first.header("location"), Some("/payments/1"));
        assert_eq!(first.body.is_empty(), status == 204);
        assert_eq!(service.executed(), number + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_sending_an_answer_is_replayed_byte_for_byte() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for (number, kind) in ["chunked", "gzip", "until-close", "whole"].into_iter().enumerate() {
        for (part, length) in ["X-Length: 300000", "X-Nothing: 1"].into_iter().enumerate() {
            let key = format!("{KEY}-{kind}-{part}");
            let ask = Ask::payment().key(&key).field(&format!("X-Kind: {kind}")).field(length);
            let first = is_replayed(&front, &ask, 201).await;
            assert_eq!(first.header("content-encoding").is_some(), kind == "gzip");
            assert_eq!(service.executed(), number * 2 + part + 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_say_that_nothing_happened_are_passed_on_and_forgotten() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for (number, status) in [400, 401, 403, 405, 411, 415, 421, 429, 431].into_iter().enumerate() {
        let ask = Ask::payment().key(&format!("{KEY}-{status}"));
        let refused = front.send(&ask.clone().field(&format!("X-Status: {status}"))).await;
        assert_eq!((refused.status, refused.told("semel-attempt")), (status, vec!["1".to_owned()]));
        let executed = front.send(&ask).await;
        assert_eq!((executed.status, executed.is_replay()), (201, false));
        assert_eq!(service.executed(), number * 2 + 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_unavailable_itself_leaves_doubt() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let first = front.send(&Ask::payment().field("X-Status: 503")).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    assert_eq!(first.json()["upstream_status"], 503);
    assert_eq!(front.send(&Ask::payment()).await.status, 409);
    assert_eq!(service.executed(), 1);
    // The service may say better.
    let word = Ask::payment()
        .key("key-that-says-better")
        .field("X-Status: 503")
        .field("X-Header: Semel-Outcome: retryable");
    let first = front.send(&word).await;
    assert_eq!((first.status, first.header("semel-outcome")), (503, None));
    assert_eq!(front.send(&word.without("X-Status").without("X-Header")).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_too_large_to_store_passes_whole_and_is_not_executed_again() {
    let service = Service::start();
    let setting = Setting::default().protection(|protection| protection.max_stored_response = 100_000);
    let front = setting.before(&service).await;
    let largest = Ask::payment().key("key-of-the-largest").field("X-Length: 100000");
    is_replayed(&front, &largest, 201).await;
    let too_large = Ask::payment().field("X-Length: 100001");
    let first = front.send(&too_large).await;
    assert_eq!((first.status, first.body.len()), (201, 100_001));
    let retry = front.send(&too_large).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
    assert_eq!(service.executed(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_stream_is_completed_first_and_passed_on_as_it_comes() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    let events = Ask::payment().field("X-Kind: event-stream").field("X-Wait-Between: next");
    client.write(events.bytes()).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (201, Some("text/event-stream")));
    assert_eq!(client.chunk().await.unwrap(), b"data: 0\n\n", "before there is a next");
    assert_eq!(front.record().await.state, State::Completed);
    service.let_go("next");
    let mut rest = Vec::new();
    while let Some(chunk) = client.chunk().await {
        rest.extend(chunk);
    }
    assert_eq!(rest, b"data: 1\n\ndata: 2\n\n");
    let retry = front.send(&events).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_the_first_caller_alone_is_not_replayed() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let ask = Ask::payment()
        .field("X-Header: Set-Cookie: session=1")
        .field("X-Header: Semel-Resource: payment/pay_1")
        .field("X-Header: Semel-Schema-Version: v2")
        .field("X-Header: Semel-Anything: x")
        .field("X-Header: X-Other: x");
    let first = front.send(&ask).await;
    assert_eq!((first.status, first.header("set-cookie")), (201, Some("session=1")));
    let retry = front.send(&ask).await;
    assert!(retry.is_replay());
    assert_eq!((retry.header("set-cookie"), retry.header("x-other")), (None, None));
    for answer in [first, retry] {
        let ours: Vec<_> = answer.headers.iter().filter(|(name, _)| name.starts_with("semel-")).collect();
        assert_eq!(ours.len(), 1, "the operation's id and nothing else: {ours:?}");
        assert_eq!(ours[0].0, "semel-operation-id");
    }
    let resource = front.record().await.resource.unwrap();
    assert_eq!((resource.kind.as_str(), resource.id.as_str()), ("payment", "pay_1"));
}
