//! No store, no execution; and no outcome is lost because the store was away.

use crate::support::{Answer, Ask, Call, Fault, Shop};
use axum::Router;
use axum::routing::post;
use semel::State;
use semel_sqlite::SqliteOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

fn refused(answer: &Answer) {
    assert_eq!((answer.status, answer.code().as_str()), (503, "idempotency_store_unavailable"));
    assert!(answer.header("retry-after").is_some());
    assert_eq!(answer.json()["retryable"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_somebody_holds_too_long_means_503_and_no_execution() {
    for warm in [false, true] {
        let shop = Shop::impatient().await;
        if warm {
            shop.send(&Ask::payment().key("key-warming-up-00001")).await;
        }
        let before = shop.till.requests();
        let other = shop.connection();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        refused(&shop.send(&Ask::payment()).await);
        assert_eq!(shop.till.requests(), before);
        other.execute_batch("ROLLBACK").unwrap();
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.is_replay(), shop.till.requests()), (201, false, before + 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_taken_after_the_handler_began_means_504_and_the_outcome_is_stored_once_it_is_free() {
    let shop = Shop::impatient().await;
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    let other = shop.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    shop.till.gate.open();
    let first = Answer::read(line).await;
    assert_eq!(
        (first.status, first.code().as_str()),
        (504, "idempotency_outcome_unknown"),
        "never 503: it ran"
    );
    assert_eq!(first.json()["upstream_status"], 201);
    refused(&shop.send(&Ask::payment()).await);
    assert_eq!(shop.engine.in_flight(), 1);

    other.execute_batch("ROLLBACK").unwrap();
    shop.engine.drained().await;
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "effect 1", true));
    assert_eq!((retry.operation_id(), shop.till.effects()), (first.operation_id(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_moved_away_means_503_until_it_is_back() {
    let shop = Shop::impatient().await;
    assert_eq!(shop.send(&Ask::payment()).await.status, 201);
    let away = shop.file().with_file_name("away.db");
    std::fs::rename(shop.file(), &away).unwrap();
    refused(&shop.send(&Ask::payment().key("key-while-it-is-away")).await);
    assert_eq!(shop.till.requests(), 1);
    std::fs::rename(&away, shop.file()).unwrap();
    assert_eq!(shop.send(&Ask::payment().key("key-while-it-is-away")).await.status, 201);
    assert!(shop.send(&Ask::payment()).await.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_means_503_and_no_execution() {
    let shop = Shop::impatient_on(SqliteOptions::new().max_file_size(120_000), |_| Router::new()).await;
    let mut answered = Vec::new();
    let full = loop {
        let answer = shop.send(&Ask::payment().key(&format!("key-of-number-{:06}", answered.len()))).await;
        if answer.status == 503 {
            break answer;
        }
        // What was carried out and could not be stored any more is unknown.
        assert!(matches!(answer.status, 201 | 504), "{answer:?}");
        answered.push(answer);
        assert!(answered.len() < 500, "it is never full");
    };
    refused(&full);
    assert_eq!(shop.till.effects() as usize, answered.len(), "whoever got 503 was not executed");
    let stored = answered.iter().filter(|answer| answer.status == 201).count();
    assert!(stored > 5);
    // What was acknowledged is there: a reader finds it, although nothing can be written.
    let records = shop.records().await;
    assert!(records.iter().filter(|record| record.state == State::Completed).count() >= stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_disk_has_no_room_for_is_unknown_and_its_work_is_not_done_again() {
    let executions = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&executions);
    let more = move |_: &_| {
        let answer = async move || {
            counted.fetch_add(1, Ordering::SeqCst);
            "x".repeat(500_000)
        };
        Router::new().route("/big", post(answer))
    };
    let shop = Shop::impatient_on(SqliteOptions::new().max_file_size(300_000), more).await;
    let ask = Ask::new("POST", "/big").key("key-of-a-big-answer-1");
    let first = shop.send(&ask).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    assert_eq!(shop.send(&ask).await.status, 409);
    assert_eq!(executions.load(Ordering::SeqCst), 1);
    assert_eq!(shop.send(&Ask::payment()).await.status, 201, "others are not held up by it");
    // It is tried on until somebody settles it; here the process ends instead.
    assert_eq!(shop.engine.in_flight(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_means_503_in_bounded_time_and_no_execution() {
    let faults = [Fault::Hang, Fault::LostCall, Fault::Unavailable].map(|fault| (Call::Remember, fault));
    let at_create =
        [Fault::Hang, Fault::LostCall, Fault::Unavailable, Fault::Panic].map(|fault| (Call::Create, fault));
    for (call, fault) in faults.into_iter().chain(at_create) {
        let shop = Shop::impatient().await;
        shop.store.always(call, fault);
        refused(&shop.send(&Ask::payment()).await);
        assert_eq!(shop.till.requests(), 0);
        shop.store.heal();
        assert_eq!(shop.send(&Ask::payment()).await.status, 201);
        assert_eq!(shop.till.requests(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_that_tells_tenants_apart_is_needed_too() {
    let shop = Shop::impatient().await;
    shop.store.next(Call::Remember, [Fault::Unavailable]);
    let ask = Ask::payment().header("Authorization", "Bearer one");
    refused(&shop.send(&ask).await);
    assert_eq!(shop.till.requests(), 0);
    assert_eq!(shop.send(&ask).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_whose_answer_is_lost_executes_once() {
    let shop = Shop::impatient().await;
    shop.store.next(Call::Create, [Fault::LostAnswer]);
    let first = shop.send(&Ask::payment()).await;
    assert_eq!((first.status, first.text()), (201, "effect 1"));
    assert!(shop.send(&Ask::payment()).await.is_replay());
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_cannot_be_stored_is_504_and_stored_once_the_store_is_back() {
    for fault in [Fault::Unavailable, Fault::Hang, Fault::LostCall, Fault::Panic] {
        let shop = Shop::impatient().await;
        shop.store.always(Call::Swap, fault);
        let first = shop.send(&Ask::payment()).await;
        assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
        let meanwhile = shop.send(&Ask::payment()).await;
        assert_eq!(meanwhile.status, 409);
        shop.store.heal();
        shop.engine.drained().await;
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "effect 1", true));
        assert_eq!(shop.till.effects(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_whose_answer_is_lost_is_given_once_it_is_found() {
    let shop = Shop::impatient().await;
    shop.store.next(Call::Swap, [Fault::LostAnswer]);
    let first = shop.send(&Ask::payment()).await;
    assert_eq!((first.status, first.text(), first.is_replay()), (201, "effect 1", false));
    assert!(shop.send(&Ask::payment()).await.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_cannot_be_stored_is_504_and_done_once_the_store_is_back() {
    let shop = Shop::impatient().await;
    shop.store.always(Call::Remove, Fault::Unavailable);
    let first = shop.send(&Ask::payment().status(429)).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    assert_eq!(first.json()["upstream_status"], 429);
    shop.store.heal();
    shop.engine.drained().await;
    assert_eq!(shop.send(&Ask::payment()).await.text(), "effect 2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_damaged_record_is_one_keys_trouble() {
    let shop = Arc::new(Shop::impatient().await);
    let damaged = Ask::payment().key("key-of-a-damaged-one");
    assert_eq!(shop.send(&damaged).await.status, 201);
    shop.connection().execute("UPDATE semel_records SET state = 'no such state'", []).unwrap();
    // Together they make up batches; the damage of one is not the others'.
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (shop, damaged) = (Arc::clone(&shop), damaged.clone());
        clients.spawn(async move {
            if number % 2 == 0 {
                let answer = shop.send(&damaged).await;
                assert_eq!((answer.status, answer.code().as_str()), (500, "idempotency_record_damaged"));
            } else {
                let answer = shop.send(&Ask::payment().key(&format!("key-of-number-{number:06}"))).await;
                assert_eq!(answer.status, 201);
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert_eq!(shop.till.effects(), 1 + 20);
}
