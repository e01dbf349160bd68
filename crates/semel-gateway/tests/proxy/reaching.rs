//! Whether a request has arrived: not running, restarted, killed, slow, broken off.

use crate::support::{Ask, Front, Service, Setting};
use semel::State;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn before_a_service_that_does_not_run_a_request_is_retryable_and_executes_once_it_does() {
    let mut service = Service::stopped();
    let front = Front::before(&service).await;
    let first = front.send(&Ask::payment()).await;
    assert_eq!((first.status, first.code().as_str()), (502, "idempotency_upstream_unreachable"));
    let problem = first.json();
    assert_eq!(problem["retryable"], true);
    assert_eq!(problem["operation_id"].as_str(), first.header("semel-operation-id"));
    assert_eq!(first.header("semel-outcome"), None);
    assert_eq!(front.record().await.state, State::FailedRetryable);
    assert_eq!(front.send(&Ask::payment()).await.status, 502);

    service.run();
    let executed = front.send(&Ask::payment()).await;
    assert_eq!((executed.status, executed.is_replay()), (201, false));
    assert_eq!(executed.told("semel-attempt"), ["3"]);
    let replayed = front.send(&Ask::payment()).await;
    assert_eq!((replayed.status, replayed.is_replay()), (201, true));
    assert_eq!(replayed.body, executed.body);
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unprotected_request_to_a_service_that_does_not_run_gets_502() {
    let service = Service::stopped();
    let front = Front::before(&service).await;
    let answer = front.send(&Ask::new("GET /payments")).await;
    assert_eq!((answer.status, answer.code().as_str()), (502, "idempotency_upstream_unreachable"));
    assert_eq!(answer.header("semel-outcome"), None);
    assert!(front.records().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_restarted_behind_kept_connections_causes_no_doubt() {
    let mut service = Service::start();
    let front = Front::before(&service).await;
    for round in 0..20 {
        // Some connections are kept, and the service goes away behind them.
        for number in 0..3 {
            let key = format!("key-before-{round:03}-{number:03}");
            assert_eq!(front.send(&Ask::payment().key(&key)).await.status, 201);
        }
        service.run();
        for number in 0..3 {
            let key = format!("key-behind-{round:03}-{number:03}");
            let answer = front.send(&Ask::payment().key(&key)).await;
            assert_eq!(answer.status, 201, "{answer:?}");
            let passed = front.send(&Ask::new("GET /")).await;
            assert_eq!(passed.status, 201, "{passed:?}");
        }
    }
    assert_eq!(service.executed(), 20 * 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_killed_in_the_middle_leaves_doubt_and_is_never_asked_again() {
    for death in ["X-Die: now", "X-Die: middle", "X-Hang-Up: 1", "X-Kind: garbage", "X-Kind: switching"] {
        let mut service = Service::start();
        let front = Front::before(&service).await;
        let first = front.send(&Ask::payment().field(death)).await;
        assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"), "{death}");
        if death.starts_with("X-Die") {
            service.died();
        }
        service.run();
        for _ in 0..2 {
            let retry = front.send(&Ask::payment()).await;
            assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        }
        assert_eq!(service.executed(), 1, "{death}");
        assert_eq!(front.record().await.state, State::Unknown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_off_on_a_kept_connection_leaves_doubt_too() {
    let mut service = Service::start();
    let front = Front::before(&service).await;
    // It leaves its connection behind, and the next one goes over that: both come over one connection, and so over one lane.
    let mut client = front.connect().await;
    let before = client.send(&Ask::payment().key("key-of-the-one-before")).await;
    assert_eq!(before.status, 201);
    let first = client.send(&Ask::payment().field("X-Die: now")).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    service.died();
    service.run();
    let retry = front.send(&Ask::payment()).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(service.executed(), 2, "each of them once");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unprotected_request_that_breaks_off_gets_502_or_a_broken_answer() {
    for death in ["X-Die: now", "X-Hang-Up: 1", "X-Kind: garbage", "X-Kind: switching"] {
        let service = Service::start();
        let front = Front::before(&service).await;
        let answer = front.send(&Ask::new("GET /").field(death)).await;
        assert_eq!((answer.status, answer.code().as_str()), (502, ""), "{death}");
    }
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    client.write(Ask::new("GET /").field("X-Die: middle").bytes()).await;
    let rest = String::from_utf8(client.rest().await).unwrap();
    assert!(!rest.ends_with('}'), "what is missing is not made up: {rest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_slower_than_the_timeout_leaves_doubt_until_its_late_answer_is_there() {
    let service = Service::start();
    let front = Setting::default().timeout(Duration::from_millis(300)).before(&service).await;
    let slow = Ask::payment().field("X-Wait: go");
    let first = front.send(&slow).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    let retry = front.send(&slow).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    service.let_go("go");
    front.engine.drained().await;
    let replayed = front.send(&slow).await;
    assert_eq!((replayed.status, replayed.is_replay()), (201, true));
    assert_eq!(replayed.json()["number"], 1);
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_never_answers_is_given_up_on() {
    let service = Service::start();
    let setting = Setting::default().limits(|limits| limits.upstream_give_up = Duration::from_millis(300));
    let front = setting.before(&service).await;
    let first = front.send(&Ask::payment().field("X-Wait: never")).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    front.engine.drained().await;
    let passed = front.send(&Ask::new("GET /").field("X-Wait: never")).await;
    assert_eq!((passed.status, passed.code().as_str()), (504, ""));
    // In the middle of an answer too.
    let mut client = front.connect().await;
    client.write(Ask::new("GET /").field("X-Kind: chunked").field("X-Wait-Between: never").bytes()).await;
    assert_eq!(client.head().await.status, 201);
    let rest = client.rest().await;
    assert!(
        !rest.is_empty() && !rest.ends_with(b"0\r\n\r\n"),
        "a broken answer does not pass for a whole one"
    );
}
