//! Many identical requests at once.

use crate::support::{Ask, KEY, Shop};
use semel::{InFlight, Policy, State};
use semel_tower::Protection;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

const CLIENTS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_200_identical_requests_one_executes_and_199_are_told_so_while_it_does() {
    let shop = Arc::new(Shop::open().await);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let shop = Arc::clone(&shop);
        clients.spawn(async move { shop.send(&Ask::payment().held()).await });
    }
    shop.till.gate.reached().await;
    // The handler is held until all the others are answered.
    let mut conflicts = Vec::new();
    while conflicts.len() < CLIENTS - 1 {
        conflicts.push(clients.join_next().await.unwrap().unwrap());
    }
    assert_eq!(shop.till.effects(), 0);
    shop.till.gate.open_for_good();
    let first = clients.join_next().await.unwrap().unwrap();

    assert_eq!((first.status, first.text(), first.is_replay()), (201, "effect 1", false));
    for conflict in conflicts {
        assert_eq!((conflict.status, conflict.code().as_str()), (409, "idempotency_key_in_progress"));
        assert!(conflict.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
        assert_eq!(conflict.operation_id(), first.operation_id());
        assert_eq!(conflict.json()["retryable"], true);
    }
    assert_eq!((shop.till.effects(), shop.till.requests()), (1, 1));

    let retry = shop.send(&Ask::payment().held()).await;
    assert_eq!((retry.status, &retry.body, retry.is_replay()), (201, &first.body, true));
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_200_identical_requests_that_may_wait_one_executes_and_all_get_its_answer() {
    let policy = Arc::new(Policy { in_flight: InFlight::Wait(Duration::from_secs(9)), ..Policy::default() });
    let shop = Arc::new(Shop::protected(Protection { policy, ..Protection::default() }).await);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let shop = Arc::clone(&shop);
        clients.spawn(async move {
            shop.send(&Ask::payment().held().answered_with("location", "/payments/1")).await
        });
    }
    shop.till.gate.reached().await;
    shop.till.gate.open_for_good();
    let answers = clients.join_all().await;
    assert_eq!((shop.till.effects(), shop.till.requests()), (1, 1));
    let first = &answers[0];
    for answer in &answers {
        assert_eq!((answer.status, &answer.body), (201, &first.body));
        assert_eq!(answer.operation_id(), first.operation_id());
        assert_eq!(answer.header("location"), Some("/payments/1"));
        assert_eq!(answer.header("content-type"), Some("text/plain"));
    }
    assert_eq!(answers.iter().filter(|answer| answer.is_replay()).count(), CLIENTS - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn different_keys_are_different_operations_even_with_the_same_body() {
    let shop = Shop::open().await;
    let one = shop.send(&Ask::payment()).await;
    let two = shop.send(&Ask::payment().key("key-another-one-0001")).await;
    assert_eq!((one.text(), two.text()), ("effect 1", "effect 2"));
    assert_ne!(one.operation_id(), two.operation_id());
    assert!(!two.is_replay());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_retries_of_a_retryable_failure_one_executes() {
    let shop = Arc::new(Shop::open().await);
    let failed = shop.send(&Ask::payment().status(503).answered_with("semel-outcome", "retryable")).await;
    assert_eq!(failed.status, 503);
    let mut clients = JoinSet::new();
    for _ in 0..50 {
        let shop = Arc::clone(&shop);
        clients.spawn(async move { shop.send(&Ask::payment().held()).await });
    }
    shop.till.gate.reached().await;
    for _ in 0..49 {
        assert_eq!(clients.join_next().await.unwrap().unwrap().status, 409);
    }
    shop.till.gate.open_for_good();
    let retried = clients.join_next().await.unwrap().unwrap();
    assert_eq!((retried.status, retried.operation_id()), (201, failed.operation_id()));
    assert_eq!(shop.till.effects(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_instances_on_one_file_execute_once() {
    let shop = Shop::open().await;
    // Another process: a store, an engine and a layer of its own.
    let other_store = semel_sqlite::SqliteStore::open(shop.file()).await.unwrap();
    let router = shop.till.clone().router().layer(semel_tower::IdempotencyLayer::new(other_store));
    let other = crate::support::Server::start(router).await;

    let held = Ask::payment().held();
    let mut clients = JoinSet::new();
    for number in 0..40 {
        let (held, address) = (held.clone(), [shop.server.address, other.address][number % 2]);
        clients.spawn(async move { held.send_to(address).await });
    }
    shop.till.gate.reached().await;
    for _ in 0..39 {
        assert_eq!(clients.join_next().await.unwrap().unwrap().status, 409);
    }
    shop.till.gate.open_for_good();
    let first = clients.join_next().await.unwrap().unwrap();
    assert_eq!((first.status, shop.till.effects()), (201, 1));
    for server in [&shop.server, &other] {
        let replay = held.send(server).await;
        assert_eq!((replay.status, &replay.body, replay.is_replay()), (201, &first.body, true));
    }
    let record = shop.record().await;
    assert_eq!((record.state, &*record.key.key), (State::Completed, KEY));
}
