//! Many at once, through two gateways on one store.

use crate::support::{Ask, Client, Database, Gateway, PAYMENTS, Service, payment};
use std::sync::Arc;
use tokio::sync::{Barrier, mpsc};

const CLIENTS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_five_hundred_duplicates_through_two_gateways_one_is_executed() {
    let (service, database) = (Service::start(), Database::new().await);
    let url = database.url();
    let gateways = tokio::join!(
        Gateway::configured(&service, &url, "", PAYMENTS),
        Gateway::configured(&service, &url, "", PAYMENTS)
    );
    let gateways = [gateways.0, gateways.1];
    // Held in the service until each gateway has turned a duplicate away, so that they are under way together.
    let ask = payment("payment-of-many").field("x-wait: go");
    let together = Arc::new(Barrier::new(CLIENTS));
    let (tell, mut told) = mpsc::unbounded_channel();
    for client in 0..CLIENTS {
        let (which, together, tell, ask) = (client % 2, Arc::clone(&together), tell.clone(), ask.clone());
        let address = gateways[which].address;
        tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            together.wait().await;
            let answer = client.send(&ask).await;
            tell.send((which, answer)).unwrap();
        });
    }
    drop(tell);
    let (mut refused, mut answers) = ([false; 2], Vec::new());
    while let Some((which, answer)) = told.recv().await {
        refused[which] |= answer.status != 201;
        if refused == [true; 2] {
            service.let_go("go");
        }
        answers.push(answer);
    }
    assert_eq!(answers.len(), CLIENTS, "everybody gets an answer");
    assert_eq!(service.executed(), 1);
    let first = answers.iter().find(|answer| answer.status == 201 && !answer.is_replay());
    let first = first.expect("whoever was first gets the service's answer");
    for answer in &answers {
        match answer.status {
            201 => assert_eq!(answer.body, first.body),
            409 => {
                assert_eq!(answer.code(), "idempotency_key_in_progress");
                assert!(answer.header("retry-after").is_some(), "{answer:?}");
            }
            // The store may be late on a machine that is busy with other things.
            503 => assert_eq!(answer.code(), "idempotency_store_unavailable"),
            _ => panic!("{answer:?}"),
        }
    }
    for gateway in &gateways {
        let retry = gateway.send(&ask).await;
        assert!(retry.is_replay(), "{retry:?}");
        assert_eq!((retry.status, &retry.body), (201, &first.body));
        for kept in ["content-type", "semel-operation-id"] {
            assert_eq!(retry.header(kept), first.header(kept), "{kept}");
        }
    }
    assert_eq!(service.executed(), 1);
}

#[tokio::test]
async fn what_differs_under_one_key_is_refused_by_the_other_gateway_too() {
    let (service, database) = (Service::start(), Database::new().await);
    let one = Gateway::configured(&service, &database.url(), "", PAYMENTS).await;
    let other = Gateway::configured(&service, &database.url(), "", PAYMENTS).await;
    assert_eq!(one.send(&payment("payment-of-one")).await.status, 201);
    let differs: Ask = payment("payment-of-one").body(r#"{"note":"b0dy-of-another"}"#);
    let refused = other.send(&differs).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (422, "idempotency_key_reused_with_different_payload")
    );
    assert_eq!(service.executed(), 1);
}
