//! The examples and start pages with a gateway in front of a service in another language, run as they say.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]

mod pages;
mod stage;

use stage::Stage;

#[test]
fn a_node_service_behind_the_gateway_is_paid_once() {
    let stage = Stage::set("gateway-node", "node", &["service.mjs", "pay.mjs"]);
    let said = stage.run("pay.mjs");
    let (reused, others) = said.split_last().expect("the client prints what it gets");
    // Of three at once one is executed; the others are in progress, or late enough to be replayed. The fourth is a retry.
    let paid = r#"{"id":"pay_1","amount":"10.00"}"#;
    assert_eq!(others.iter().filter(|line| **line == format!("201 first {paid}")).count(), 1, "{said:#?}");
    assert_eq!(others.last(), Some(&format!("201 true {paid}")), "{said:#?}");
    for line in others {
        assert!(line.starts_with("409 first ") || line.ends_with(paid), "{line}");
    }
    assert!(reused.starts_with("422 ") && reused.contains("reused_with_different_payload"), "{reused}");
    assert_eq!(stage.payments(), ["payment 1: 10.00"]);
}

#[test]
fn a_python_service_behind_the_gateway_is_paid_once() {
    let stage = Stage::set("gateway-python", "python3", &["service.py", "pay.py"]);
    let said = stage.run("pay.py");
    let paid = "{'id': 'pay_1', 'amount': '10.00'}";
    assert_eq!(said[..2], [format!("(201, None, {paid})"), format!("(201, 'true', {paid})")]);
    assert!(said[2].starts_with("(422, ") && said[2].contains("reused_with_different_payload"), "{said:#?}");
    assert_eq!(said.len(), 3);
    assert_eq!(stage.payments(), [format!("payment {paid}")]);
}

#[test]
fn a_python_client_waits_for_a_service_that_is_down() {
    let mut stage = Stage::set("gateway-python", "python3", &["service.py", "pay.py"]);
    stage.kill_service();
    let client = stage.begin("pay.py");
    stage.has_refused_one();
    stage.start_service();
    let said = stage.end(client);
    assert!(said[0].starts_with("(201, None, ") && said[1].starts_with("(201, 'true', "), "{said:#?}");
    assert_eq!(stage.payments().len(), 1);
}
