//! One key names one request across all operations of a tenant, and the scope of keys changes while they are live.

use crate::formerly::{refused, reload};
use crate::support::{Database, Gateway, Service, configuration, payment, post, until};
use serde_json::Value;

const ROUTES: &str = r#"
[[route]]
operation = "create_payment"
match = "POST /payments"
[[route]]
operation = "create_refund"
match = "POST /refunds"
"#;
const REUSED: (u16, &str) = (422, "idempotency_key_reused_with_different_payload");

fn scope(settings: &str) -> String {
    format!("[key]\n{settings}\n{ROUTES}")
}

/// Two operations come under one key, the one while the other is being executed: through two gateways on one store.
async fn one_of_two_operations_executes(store: &str) {
    let service = Service::start();
    let sections = scope("scope = \"tenant\"");
    let one = Gateway::configured(&service, store, "", &sections).await;
    let other = Gateway::configured(&service, store, "", &sections).await;
    let (pay, refund) = (payment("two-operations").field("x-wait: go"), post("/refunds", "two-operations"));
    let address = one.address;
    let paying = tokio::spawn({
        let pay = pay.clone();
        async move { crate::support::send(address, &pay).await }
    });
    until("the service has the payment", || service.executed() == 1).await;
    for gateway in [&one, &other] {
        let answer = gateway.send(&refund).await;
        assert_eq!((answer.status, &*answer.code()), REUSED, "while the payment is under way");
    }
    service.let_go("go");
    let first = paying.await.unwrap();
    assert!(first.status == 201 && !first.is_replay(), "{first:?}");
    for gateway in [&one, &other] {
        let replay = gateway.send(&pay).await;
        assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
        let answer = gateway.send(&refund).await;
        assert_eq!((answer.status, &*answer.code()), REUSED, "once it is over");
    }
    assert_eq!(service.executed(), 1);
    assert_eq!(one.send(&post("/refunds", "another-key")).await.status, 201);

    // The record knows its operation.
    for (operation, count) in [("create_payment", 1), ("create_refund", 1), ("create_payout", 0)] {
        let listed = one.asked(&format!("/v1/operations?operation={operation}")).await;
        let listed: Value = serde_json::from_slice(&listed.body).unwrap();
        let found = listed["operations"].as_array().unwrap();
        assert_eq!(found.len(), count, "{listed}");
        assert!(found.iter().all(|found| found["operation"] == operation), "{listed}");
    }
    let metrics = one.asked("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(metrics.contains("operation=\"create_payment\"") && !metrics.contains("\"* create"), "{metrics}");
}

#[tokio::test]
async fn of_two_operations_under_one_key_one_executes_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    one_of_two_operations_executes(&format!("sqlite:{}", directory.path().join("semel.db").display())).await;
}

#[tokio::test]
async fn of_two_operations_under_one_key_one_executes_on_postgres() {
    let database = Database::new().await;
    one_of_two_operations_executes(&database.url()).await;
}

#[tokio::test]
async fn another_scope_is_refused_while_keys_are_live_unless_the_former_one_is_told() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let gateway = Gateway::configured(&service, &store, "", &scope("")).await;
    let ask = payment("before-the-change");
    let first = gateway.send(&ask).await;
    assert_eq!(first.status, 201);
    for (change, former, named) in
        [("tenant", "operation", "create_payment"), ("path", "operation", "create_payment")]
    {
        gateway.is_given(&configuration(&service, &store, "", &scope(&format!("scope = \"{change}\""))));
        let (is_done, said) = reload(&gateway);
        let advice = format!("{named} has 1 live key: add former_scope = \"{former}\"");
        assert!(!is_done && said.contains(&advice), "{said}");
        assert!(gateway.send(&ask).await.is_replay(), "the old scope stays in force");
    }
    let told = scope("scope = \"tenant\"\nformer_scope = \"operation\"");
    gateway.is_given(&configuration(&service, &store, "", &told));
    let (is_done, said) = reload(&gateway);
    assert!(is_done, "{said}");
    assert!(gateway.send(&ask).await.is_replay());
    // A key of the new scope, which the old one would not find.
    let across = payment("after-the-change");
    assert_eq!(gateway.send(&across).await.status, 201);
    drop(gateway);

    let said = refused(&service, &store, &scope(""));
    assert!(said.contains("create_payment has 1 live key: add former_scope = \"tenant\""), "{said}");
    let said = refused(&service, &store, &scope("scope = \"tenant\""));
    assert!(said.contains("create_payment has 1 live key: add former_scope = \"operation\""), "{said}");
    let gateway = Gateway::configured(&service, &store, "", &told).await;
    for ask in [&ask, &across] {
        assert!(gateway.send(ask).await.is_replay());
    }
    assert_eq!(service.executed(), 2);
}

#[tokio::test]
async fn the_scope_that_comes_with_a_profile_is_a_change_like_any_other() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let by_flags = Gateway::by_flags(&service, &store).await;
    let ask = payment("by-flags");
    assert_eq!(by_flags.send(&ask).await.status, 201);
    drop(by_flags);
    let file = directory.path().join("semel.toml");
    let stripe = |more: &str| configuration(&service, &store, "profile = \"stripe\"", more);
    std::fs::write(&file, stripe("")).unwrap();
    let output = crate::support::semel().args(["gateway", "--config"]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("add former_scope = \"operation\" to [key]"), "{said}");
    let gateway =
        Gateway::configured(&service, &store, "profile = \"stripe\"", "[key]\nformer_scope = \"operation\"")
            .await;
    assert!(gateway.send(&ask).await.is_replay());
    let refund = gateway.send(&post("/refunds", "by-flags")).await;
    assert_eq!(refund.status, 201, "in the former scope, it was a key of another operation");
    let across = payment("across-operations");
    assert_eq!(gateway.send(&across).await.status, 201);
    assert_eq!(gateway.send(&post("/refunds", "across-operations")).await.status, 400, "as Stripe has it");
    assert_eq!(service.executed(), 3);
}

#[tokio::test]
async fn by_path_the_same_key_is_another_one_on_another_path() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let route = "[[route]]\noperation = \"complete\"\nmatch = \"POST /sessions/{id}/complete\"\n";
    let gateway = Gateway::configured(&service, &store, "profile = \"acp\"", route).await;
    for session in ["one", "two"] {
        let ask = post(&format!("/sessions/{session}/complete"), "one-key");
        let first = gateway.send(&ask).await;
        assert!(first.status == 201 && !first.is_replay(), "{first:?}");
        assert!(gateway.send(&ask).await.is_replay());
    }
    assert_eq!(service.executed(), 2);
    let metrics = gateway.asked("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    assert!(metrics.contains("operation=\"complete\"") && !metrics.contains("/sessions/one"), "{metrics}");
}
