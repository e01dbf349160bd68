//! The store is lost, before an execution and after it.

use crate::support::{
    Ask, Client, Database, Gateway, PAYMENTS, Passing, Service, Way, key, payment, send_until,
    send_until_settled,
};

const SETTINGS: &str = r#"store_timeout = "500ms""#;

fn payments_executed(service: &Service) -> usize {
    service.executions().iter().filter(|line| line.starts_with("POST /payments")).count()
}

#[tokio::test]
async fn without_a_store_nothing_is_executed_and_everything_else_is_served() {
    for lost in [Passing::Refused, Passing::Silent] {
        let (service, database) = (Service::start(), Database::new().await);
        let way = Way::to(&database).await;
        let gateway = Gateway::configured(&service, &way.url, SETTINGS, PAYMENTS).await;
        // Of two tenants: the secret that tells them apart is not known yet when the store goes away.
        let before = payment("payment-before");
        let meanwhile = payment("payment-meanwhile").field("Authorization: Bearer cr3d-of-ada");
        assert_eq!(gateway.send(&before).await.status, 201);
        assert_eq!(gateway.asked("/readyz").await.status, 200);

        way.becomes(lost);
        for ask in [&meanwhile, &before] {
            let refused = gateway.send(ask).await;
            assert_eq!((refused.status, refused.code().as_str()), (503, "idempotency_store_unavailable"));
            assert!(refused.header("retry-after").is_some(), "{refused:?}");
            assert_eq!(refused.json()["retryable"], true);
        }
        assert_eq!(payments_executed(&service), 1, "no store, no execution ({lost:?})");
        let with_key = Ask::new("GET /payments").key(&key("payment-meanwhile"));
        assert_eq!(gateway.send(&with_key).await.status, 201);
        let unprotected = Ask::new("POST /searches").body(r#"{"what":"b0dy-of-a-search"}"#);
        assert_eq!(gateway.send(&unprotected).await.status, 201);
        assert_eq!(gateway.asked("/healthz").await.status, 200);
        let ready = gateway.asked("/readyz").await;
        assert_eq!((ready.status, &ready.json()["ready"]), (503, &false.into()));

        way.becomes(Passing::Open);
        let retry = send_until_settled(gateway.address, &before).await;
        assert!(retry.status == 201 && retry.is_replay(), "{retry:?}");
        // The reservation that was refused may have been made after all: it is given back then.
        let first = send_until_settled(gateway.address, &meanwhile).await;
        assert!(first.status == 201 && !first.is_replay(), "{first:?}");
        assert_eq!(payments_executed(&service), 2);
        send_until(gateway.admin, &Ask::new("GET /readyz"), |answer| answer.status == 200).await;
    }
}

#[tokio::test]
async fn an_outcome_that_cannot_be_stored_is_there_once_the_store_is_back() {
    for lost in [Passing::Refused, Passing::Silent] {
        let (service, database) = (Service::start(), Database::new().await);
        let way = Way::to(&database).await;
        let gateway = Gateway::configured(&service, &way.url, SETTINGS, PAYMENTS).await;
        let ask = payment("payment-in-between").field("x-wait: go");
        let mut client = Client::connect(gateway.address).await;
        client.write(ask.bytes()).await;
        service.has_executed(1).await;

        way.becomes(lost);
        service.let_go("go");
        let first = client.answer().await;
        assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"), "{lost:?}");
        let id = first.header("semel-operation-id").expect("every protected answer has it").to_owned();
        let meanwhile = gateway.send(&ask).await;
        assert_eq!((meanwhile.status, meanwhile.code().as_str()), (503, "idempotency_store_unavailable"));

        way.becomes(Passing::Open);
        let retry = send_until_settled(gateway.address, &ask).await;
        assert!(retry.status == 201 && retry.is_replay(), "{retry:?}");
        assert_eq!(
            (retry.json()["number"].as_u64(), retry.header("semel-operation-id")),
            (Some(1), Some(&*id))
        );
        assert_eq!(service.executed(), 1);
    }
}

#[tokio::test]
async fn a_gateway_that_ends_while_the_store_is_away_waits_for_it_to_come_back() {
    let (service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let mut gateway = Gateway::configured(&service, &way.url, SETTINGS, PAYMENTS).await;
    let ask = payment("payment-at-the-end").field("x-wait: go");
    let mut client = Client::connect(gateway.address).await;
    client.write(ask.bytes()).await;
    service.has_executed(1).await;
    way.becomes(Passing::Refused);
    service.let_go("go");
    assert_eq!(client.answer().await.status, 504);
    gateway.is_told_to_end();
    gateway.has_logged("stopping: no new connections").await;
    way.becomes(Passing::Open);
    assert_eq!(gateway.ended().await.code(), Some(0));

    let next = Gateway::configured(&service, &database.url(), SETTINGS, PAYMENTS).await;
    let retry = next.send(&ask).await;
    assert!(retry.status == 201 && retry.is_replay(), "{retry:?}");
    assert_eq!(service.executed(), 1);
}
