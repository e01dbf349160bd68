//! What clients are told of payments that a provider has a part in.

use crate::harness::{ACCOUNT, Answer, Service, key, payment};
use crate::support::{Database, Kind, ProviderAt, until_settled};
use hyper::Method;
use payments::{PROVIDER_MODE, PaymentsOptions, PaymentsService, ProviderOptions, ProviderPromise};
use serde_json::json;
use tokio::net::TcpListener;

const BOTH: [Kind; 2] = [Kind::Sqlite, Kind::Postgres];

struct Shop {
    service: Service,
    provider: ProviderAt,
    _database: Database,
}

impl Shop {
    async fn open(kind: Kind, promise: ProviderPromise) -> Self {
        let (provider, database) = (ProviderAt::start(promise).await, Database::new(kind).await);
        let options = PaymentsOptions {
            provider: Some(ProviderOptions::new(provider.url().parse().unwrap(), promise)),
            demo_delays: true,
            ..PaymentsOptions::default()
        };
        let service = PaymentsService::open(&database.url, options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(service.serve(listener, std::future::pending()));
        Self { service: Service { address }, provider, _database: database }
    }

    async fn pay(&self, name: &str, mode: &str) -> Answer {
        let body = payment("10.00", &format!("invoice-{name}"));
        let misbehaving = [(PROVIDER_MODE, mode)];
        let more = if mode.is_empty() { &[][..] } else { &misbehaving };
        self.service.pay_with(ACCOUNT, &key(name), more, &body).await
    }

    async fn charges(&self) -> u64 {
        self.provider.summary().await["charges"].as_u64().unwrap()
    }
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_payment_is_charged_once_and_its_operation_can_be_asked_about() {
    for kind in BOTH {
        let shop = Shop::open(kind, ProviderPromise::Deduplicates).await;
        let body = payment("10.00", "invoice-1");
        let first = shop.service.pay(&key("one"), &body).await;
        assert_eq!((first.status, &first.json()["status"]), (201, &json!("completed")));
        let retry = shop.service.pay(&key("one"), &body).await;
        assert!(retry.replayed());
        assert_eq!(retry.kept(), first.kept());
        assert_eq!(shop.charges().await, 1);

        let operation = first.headers["semel-operation-id"].to_str().unwrap();
        let shown = shop.service.get(ACCOUNT, &format!("/operations/{operation}")).await;
        let document = shown.json();
        assert_eq!(
            (shown.status, &document["state"], &document["status"]),
            (200, &json!("completed"), &json!(201))
        );
        assert_eq!(document["body"], String::from_utf8_lossy(&first.body).into_owned());
        assert_eq!(document["resource"], json!({ "type": "payment", "id": first.json()["id"] }));
        for other in [format!("/operations/{operation}"), "/operations/nonsense".into()] {
            assert_eq!(
                shop.service.get("acct_berta", &other).await.status,
                404,
                "another account's is not there"
            );
        }
    }
}

#[tokio::test]
async fn a_declined_payment_is_replayed_as_declined_and_leaves_its_reference_free() {
    for kind in BOTH {
        let shop = Shop::open(kind, ProviderPromise::Deduplicates).await;
        let first = shop.pay("poor", "decline").await;
        assert_eq!((first.status, &first.json()["status"]), (402, &json!("declined")));
        // The provider would charge it now; nobody asks.
        let retry = shop.pay("poor", "").await;
        assert!(retry.replayed());
        assert_eq!(retry.kept(), first.kept());
        assert_eq!(shop.charges().await, 0);
        let location = first.headers["location"].to_str().unwrap();
        assert_eq!(shop.service.get(ACCOUNT, location).await.json()["status"], "declined");

        let body = payment("10.00", "invoice-poor");
        let paid = shop.service.pay(&key("another-card"), &body).await;
        assert_eq!(paid.status, 201, "{}", paid.json());
        let lost_key = shop.service.pay(&key("lost-its-key"), &body).await;
        assert_eq!((lost_key.status, lost_key.json()), (200, paid.json()), "the payment that is there");
        let other_terms = shop.service.pay(&key("other-terms"), &payment("11.00", "invoice-poor")).await;
        assert_eq!(code(&other_terms), (409, "merchant_reference_taken".into()));
        assert_eq!(shop.charges().await, 1);
    }
}

#[tokio::test]
async fn without_an_answer_the_outcome_is_unknown_and_nobody_charges_again() {
    for (kind, promise) in
        [(Kind::Sqlite, ProviderPromise::Deduplicates), (Kind::Postgres, ProviderPromise::Neither)]
    {
        let shop = Shop::open(kind, promise).await;
        for (name, mode, charges) in
            [("dropped", "drop-after", 1), ("failed", "error-after", 1), ("lost", "drop-before", 0)]
        {
            let before = shop.charges().await;
            let first = shop.pay(name, mode).await;
            assert_eq!(code(&first), (504, "idempotency_outcome_unknown".into()), "{mode}");
            let retry = shop.pay(name, "").await;
            assert_eq!(code(&retry), (409, "idempotency_outcome_unknown".into()), "{mode}");
            assert_eq!(shop.charges().await - before, charges, "{mode}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_can_be_asked_is_asked_at_once() {
    for kind in BOTH {
        let shop = Shop::open(kind, ProviderPromise::CanBeAsked).await;
        // It was charged, only the answer was lost: the provider says so when asked.
        let paid = shop.pay("dropped", "drop-after").await;
        assert_eq!((paid.status, shop.charges().await), (201, 1), "{}", paid.json());
        // It was not, and never will be: nothing happened, and the retry goes on after the first phase.
        let nothing = shop.pay("lost", "drop-before").await;
        assert_eq!(code(&nothing), (503, "interrupted".into()));
        let retry = shop.pay("lost", "").await;
        assert_eq!((retry.status, shop.charges().await), (201, 2), "{}", retry.json());
    }
}

#[tokio::test]
async fn a_refund_has_a_scope_of_its_own_and_never_exceeds_the_payment() {
    for kind in BOTH {
        let shop = Shop::open(kind, ProviderPromise::Deduplicates).await;
        let paid = shop.pay("one", "").await;
        let path = format!("{}/refunds", paid.headers["location"].to_str().unwrap());
        let refund = |key: String, body: serde_json::Value| {
            let (service, path) = (shop.service, path.clone());
            async move { until_settled(service, &path, &key, &body).await }
        };
        // The payment's own key: another operation, and so another thing.
        let first = refund(key("one"), json!({ "amount": "4.00" })).await;
        assert_eq!((first.status, &first.json()["amount"]), (201, &json!("4.00")));
        let retry = refund(key("one"), json!({ "amount": "4.00" })).await;
        assert!(retry.replayed());
        assert_eq!(retry.kept(), first.kept());
        assert_eq!(
            code(&refund(key("one"), json!({ "amount": "5.00" })).await).0,
            422,
            "one key, one request"
        );
        let too_much = refund(key("too-much"), json!({ "amount": "6.01" })).await;
        assert_eq!(code(&too_much), (409, "refund_exceeds_payment".into()));
        assert!(refund(key("too-much"), json!({ "amount": "6.01" })).await.replayed());

        // Ten ask for the rest at once, each with a key of its own: one gets it.
        let mut asking = tokio::task::JoinSet::new();
        for number in 0..10 {
            asking.spawn(refund(key(&format!("rest-{number}")), json!({})));
        }
        let answers = asking.join_all().await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
        assert_eq!(shop.provider.summary().await["refunds"], 2);

        let theirs = key("theft");
        let headers = [
            ("x-account-id", "acct_berta"),
            ("idempotency-key", &*theirs),
            ("content-type", "application/json"),
        ];
        let nobodys = shop.service.send(Method::POST, &path, &headers, "{}").await;
        assert_eq!(code(&nobodys), (404, "payment_not_found".into()));
    }
}
