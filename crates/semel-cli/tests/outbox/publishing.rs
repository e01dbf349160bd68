//! Who publishes.

use crate::support::{Gateway, Worker, semel, until};
use crate::{Shop, event};

#[test]
fn a_gateway_publishes_what_an_application_appended() {
    let shop = Shop::new();
    let gateway = Gateway::start(&shop.config("semel.toml", ""));
    let sent = event("payment/pay_1", "PaymentCreated", 1);
    shop.append(vec![sent.clone()]);
    let kept = until("the event", || shop.receiver.kept().into_iter().next());
    assert_eq!(kept.header("webhook-id"), sent.id.to_string());
    assert_eq!(kept.header("semel-aggregate"), "payment/pay_1");
    assert!(kept.header("webhook-signature").starts_with("v1,"));
    assert_eq!(kept.body, r#"{"number":1}"#);
    until("its end", || {
        let listed = gateway.ask("/v1/outbox").json();
        listed["events"].as_array().unwrap().is_empty().then_some(())
    });
    assert_eq!(gateway.metric("api_idempotency_outbox_published_total"), 1);
    assert_eq!(gateway.metric("api_idempotency_outbox_failed_total"), 0);
    assert_eq!(shop.receiver.kept().len(), 1);
}

#[test]
fn a_worker_publishes_beside_gateways_that_do_not() {
    let shop = Shop::new();
    let config = shop.config("semel.toml", "in_gateway = false");
    let gateway = Gateway::start(&config);
    shop.append((0..3).map(|number| event("payment/pay_1", "PaymentCreated", number)).collect());
    assert_eq!(gateway.ask("/v1/outbox").json()["events"].as_array().unwrap().len(), 3);
    assert_eq!(gateway.ask("/v1/stats").json()["outbox"]["backlog"], 3);
    let worker = Worker::start(&config);
    until("the events", || (shop.receiver.kept().len() == 3).then_some(()));
    assert_eq!(shop.receiver.bodies(), [0, 1, 2].map(|number| format!("{{\"number\":{number}}}")));
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn a_reload_changes_who_publishes_and_counts_on() {
    let shop = Shop::new();
    let gateway = Gateway::start(&shop.config("semel.toml", "in_gateway = false"));
    let reload = |worker: &str| {
        shop.config("semel.toml", worker);
        let admin = format!("http://{}", gateway.admin);
        let output = semel().args(["reload", "--admin", &admin]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    let published = || gateway.metric("api_idempotency_outbox_published_total");
    shop.append(vec![event("payment/pay_1", "PaymentCreated", 1)]);
    assert_eq!(published(), 0, "nobody publishes yet");
    reload("");
    until("the event", || (shop.receiver.kept().len() == 1).then_some(()));
    until("its count", || (published() == 1).then_some(()));
    reload("forget = \"soft\"");
    assert_eq!(published(), 1, "another publisher, and the same count");
}
