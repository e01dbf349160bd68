//! What an answer of the service says of the operation.

use crate::support::{Ask, Shop};
use http::StatusCode;
use semel::State;
use semel_tower::{OutcomeClass, OutcomeRules, Protection};

/// What the client gets first, what it gets when it asks again, and how often the till was asked.
async fn told_twice(ask: Ask) -> (u16, u16, bool, u32, Shop) {
    let shop = Shop::open().await;
    let first = shop.send(&ask).await;
    // The retry is answered by the till with 201, if it gets there.
    let retry = shop.send(&ask.without("x-respond").status(201)).await;
    let effects = shop.till.effects();
    (first.status, retry.status, retry.is_replay(), effects, shop)
}

#[tokio::test(flavor = "multi_thread")]
async fn completed_and_failed_answers_are_replayed() {
    for status in [200, 201, 202, 204, 302, 303, 404, 409, 410, 413, 422, 500, 501, 505, 507, 508, 511] {
        let (first, retry, replayed, effects, shop) = told_twice(Ask::payment().status(status)).await;
        assert_eq!((first, retry, replayed, effects), (status, status, true, 1));
        let state = if status < 400 { State::Completed } else { State::FailedReplayable };
        assert_eq!(shop.record().await.state, state, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_say_that_nothing_happened_are_forgotten() {
    for status in [400, 401, 403, 405, 407, 411, 414, 415, 421, 425, 426, 429, 431] {
        let shop = Shop::open().await;
        let first = shop.send(&Ask::payment().status(status)).await;
        assert_eq!(
            (first.status, first.text()),
            (status, "effect 1"),
            "the service's own answer is passed on"
        );
        assert!(shop.records().await.is_empty());
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "effect 2", false));
        assert_ne!(retry.operation_id(), first.operation_id(), "as if never seen");
        assert_eq!(shop.till.saw().get("semel-attempt").unwrap(), "1");
        let other = shop.send(&Ask::payment().key("key-0123456789-other").status(status)).await;
        assert_eq!(other.status, status);
        let corrected =
            shop.send(&Ask::payment().key("key-0123456789-other").json(r#"{"amount":"11.00"}"#)).await;
        assert_eq!(corrected.status, 201, "a corrected request may use the key");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_speak_of_somebody_behind_the_service_are_unknown() {
    for status in [408, 499, 502, 503, 504, 520, 524, 599] {
        let shop = Shop::open().await;
        let first = shop.send(&Ask::payment().status(status)).await;
        assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
        assert_eq!(first.json()["upstream_status"], status);
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        assert_eq!(shop.till.effects(), 1);
        let record = shop.record().await;
        assert_eq!((record.state, record.last_error), (State::Unknown, Some(format!("status_{status}"))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_services_word_beats_its_status() {
    // For both a status that says completed and one that says unknown.
    for status in [201, 503] {
        let said =
            |word: &str| told_twice(Ask::payment().status(status).answered_with("semel-outcome", word));
        for (word, state) in [("completed", State::Completed), ("failed", State::FailedReplayable)] {
            let (first, retry, replayed, effects, shop) = said(word).await;
            assert_eq!((first, retry, replayed, effects), (status, status, true, 1), "{word}");
            assert_eq!(shop.record().await.state, state);
        }
        for (word, attempt) in [("retryable", 2), ("released", 1)] {
            let (first, retry, replayed, effects, shop) = said(word).await;
            assert_eq!((first, retry, replayed, effects), (status, 201, false, 2), "{word}");
            assert_eq!(shop.record().await.attempt, attempt);
        }
        // A word that nobody understands was meant to say something.
        for word in ["unknown", "Completed", "done", "", "completed, failed"] {
            let (first, retry, _, effects, shop) = said(word).await;
            assert_eq!((first, retry, effects), (504, 409, 1), "{word:?}");
            assert_eq!(shop.record().await.state, State::Unknown);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_words_are_no_word() {
    let ask =
        Ask::payment().answered_with("semel-outcome", "released").answered_with("semel-outcome", "completed");
    let (first, retry, _, effects, _) = told_twice(ask).await;
    assert_eq!((first, retry, effects), (504, 409, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retryable_failure_is_attempted_again_under_the_same_operation_id() {
    let shop = Shop::open().await;
    let failing = Ask::payment().status(503).answered_with("semel-outcome", "retryable");
    let first = shop.send(&failing).await;
    assert_eq!((first.status, first.text()), (503, "effect 1"), "the service's own answer is passed on");
    let operation_id = shop.till.saw().get("semel-operation-id").cloned().unwrap();
    let second = shop.send(&failing).await;
    let third = shop.send(&Ask::payment()).await;
    assert_eq!((second.status, third.status), (503, 201));
    for answer in [&first, &second, &third] {
        assert_eq!(answer.operation_id(), operation_id);
    }
    let saw = shop.till.saw();
    assert_eq!(saw.get("semel-attempt").unwrap(), "3");
    assert_eq!(saw.get("semel-operation-id").unwrap(), operation_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_attempt_that_is_released_stays_retryable() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment().answered_with("semel-outcome", "retryable")).await;
    let second = shop.send(&Ask::payment().status(429)).await;
    assert_eq!((second.status, second.operation_id()), (429, first.operation_id()));
    assert_eq!(shop.record().await.state, State::FailedRetryable);
    let third = shop.send(&Ask::payment()).await;
    assert_eq!((third.status, third.operation_id()), (201, first.operation_id()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_may_read_a_status_differently() {
    let outcomes = OutcomeRules::default()
        .with(StatusCode::SERVICE_UNAVAILABLE, OutcomeClass::Retryable)
        .with(StatusCode::BAD_REQUEST, OutcomeClass::Failed);
    let shop = Shop::protected(Protection { outcomes, ..Protection::default() }).await;
    assert_eq!(shop.send(&Ask::payment().status(503)).await.status, 503);
    assert_eq!(shop.send(&Ask::payment().status(400)).await.status, 400);
    let replay = shop.send(&Ask::payment()).await;
    assert_eq!((replay.status, replay.is_replay(), shop.till.effects()), (400, true, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_service_declares_is_kept_and_not_passed_on() {
    let shop = Shop::open().await;
    let ask = Ask::payment()
        .answered_with("semel-resource", "payment/pay_1/x")
        .answered_with("semel-schema-version", "v2")
        .answered_with("semel-outcome", "completed")
        .answered_with("semel-whatever", "x");
    for _ in 0..2 {
        let answer = shop.send(&ask).await;
        assert_eq!(answer.status, 201);
        for name in ["semel-resource", "semel-schema-version", "semel-outcome", "semel-whatever"] {
            assert_eq!(answer.header(name), None, "{name}");
        }
    }
    let record = shop.record().await;
    let resource = record.resource.unwrap();
    assert_eq!((resource.kind.as_str(), resource.id.as_str()), ("payment", "pay_1/x"));
    assert_eq!(record.response.unwrap().schema_version.as_deref(), Some("v2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_is_told_of_its_attempt_and_a_client_cannot_forge_that() {
    let shop = Shop::open().await;
    let ask = Ask::payment()
        .header("Semel-Operation-Id", "forged")
        .header("Semel-Attempt", "9")
        .header("Semel-Outcome", "completed")
        .header("Semel-Anything", "x")
        .header("Accept-Encoding", "br, gzip");
    let answer = shop.send(&ask).await;
    let saw = shop.till.saw();
    assert_eq!(saw.get("semel-operation-id").unwrap(), answer.operation_id());
    assert_eq!(saw.get_all("semel-operation-id").iter().count(), 1);
    assert_eq!(saw.get("semel-attempt").unwrap(), "1");
    assert!(!saw.contains_key("semel-outcome") && !saw.contains_key("semel-anything"));
    assert_eq!(saw.get("accept-encoding").unwrap(), "identity", "what is stored has to suit every retry");
}
