//! How far a payment is: each of its states, as clients of the service see it.

use crate::harness::{ACCOUNT, Answer, Service, key, payment};
use crate::support::{Database, Kind, PATIENCE, Process, ProviderAt, Start};
use hyper::Method;
use payments::{PROVIDER_MODE, ProviderPromise, Status};
use serde_json::json;
use std::time::Duration;

/// What brings a payment there.
enum Way {
    /// It stops at this place.
    StopsAt(&'static str),
    /// The provider does this, and this is what the client gets.
    Provider(&'static str, u16),
}

/// The ways to all states. A new state does not compile before it has one, and the test goes to every one of them.
fn way(to: Status) -> (Way, Option<Status>) {
    match to {
        Status::Received => (Way::StopsAt("received"), Some(Status::LocalPaymentCreated)),
        Status::LocalPaymentCreated => (Way::StopsAt("created"), Some(Status::ProviderRequestSent)),
        Status::ProviderRequestSent => (Way::StopsAt("charged:sent"), Some(Status::ProviderConfirmed)),
        Status::ProviderConfirmed => (Way::StopsAt("charged"), Some(Status::Completed)),
        Status::Completed => (Way::Provider("", 201), Some(Status::Declined)),
        Status::Declined => (Way::Provider("decline", 402), Some(Status::Unknown)),
        Status::Unknown => (Way::Provider("drop-after", 504), None),
    }
}

async fn pay(service: Service, mode: &str) -> Option<Answer> {
    let key = key("state");
    let mut headers =
        vec![("idempotency-key", &*key), ("x-account-id", ACCOUNT), ("content-type", "application/json")];
    if !mode.is_empty() {
        headers.push((PROVIDER_MODE, mode));
    }
    let body = payment("10.00", "invoice-1").to_string();
    service.try_send(Method::POST, "/payments", &headers, body).await
}

/// A payment on the way to `status`, as `/operations/{id}` and the list of payments show it.
async fn shown_on_the_way(kind: Kind, status: Status) {
    let (database, provider) = (Database::new(kind).await, ProviderAt::start(ProviderPromise::Neither).await);
    let url = provider.url();
    let fail_point = match way(status).0 {
        Way::StopsAt(fail_point) => Some(fail_point),
        Way::Provider(..) => None,
    };
    let mut process = Process::start(Start {
        database: &database.url,
        provider: &url,
        promise: ProviderPromise::Neither,
        lease: PATIENCE + Duration::from_secs(30),
        fail_point,
        more: &["--demo"],
    })
    .await;
    let service = process.service;
    let expected = json!(status);
    let operation = match way(status).0 {
        Way::StopsAt(fail_point) => {
            tokio::spawn(pay(service, ""));
            process.is_at(fail_point).await;
            // A duplicate learns which operation it waits for.
            let duplicate = pay(service, "").await.unwrap();
            assert_eq!(duplicate.json()["code"], "idempotency_key_in_progress", "{status:?}");
            duplicate
        }
        Way::Provider(mode, gets) => {
            let answer = pay(service, mode).await.unwrap();
            assert_eq!(answer.status, gets, "{status:?}");
            if gets != 504 {
                assert_eq!(answer.json()["status"], expected, "the client is told so");
            }
            answer
        }
    };
    let operation = operation.headers["semel-operation-id"].to_str().unwrap().to_owned();
    let asked = service.get(ACCOUNT, &format!("/operations/{operation}")).await;
    match asked.status {
        202 => assert_eq!(asked.json()["payment_status"], expected, "{kind:?}"),
        status => assert_eq!((status, asked.json()["body"].as_str().is_some()), (200, true), "{kind:?}"),
    }
    // Before its row is there, there is no payment to be listed.
    let listed = service.get(ACCOUNT, "/payments").await.json();
    let newest = if status == Status::Received { json!(null) } else { expected };
    assert_eq!(listed["newest"][0]["status"], newest, "{kind:?}: {listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_shows_each_of_its_states() {
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let (mut next, mut shown) = (Some(Status::Received), Vec::new());
        while let Some(status) = next {
            shown_on_the_way(kind, status).await;
            shown.push(json!(status));
            next = way(status).1;
        }
        assert_eq!(
            shown,
            [
                "received",
                "local_payment_created",
                "provider_request_sent",
                "provider_confirmed",
                "completed",
                "declined",
                "unknown"
            ]
        );
    }
}
