//! `semel outbox`.

use crate::support::{Gateway, semel, until};
use crate::{Shop, event};
use std::process::Output;
use std::sync::atomic::Ordering;

fn outbox(gateway: &Gateway, arguments: &[&str]) -> Output {
    let admin = format!("http://{}", gateway.admin);
    semel().arg("outbox").args(arguments).args(["--admin", &admin]).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A gateway before a shop whose second event was refused for good, and that event's id.
fn with_a_dead_letter() -> (Shop, Gateway, String) {
    let shop = Shop::new();
    let gateway = Gateway::start(&shop.config("semel.toml", ""));
    let events = vec![
        event("payment/pay_1", "PaymentCreated", 0),
        event("payment/pay_1", "Bad", 1),
        event("payment/pay_1", "PaymentCaptured", 2),
    ];
    let id = events[1].id.to_string();
    shop.append(events);
    until("the dead letter", || {
        let listed = gateway.ask("/v1/outbox?dead_letter=true").json();
        (listed["events"].as_array().unwrap().len() == 1).then_some(())
    });
    (shop, gateway, id)
}

#[test]
fn a_dead_letter_is_listed_shown_and_requeued() {
    let (shop, gateway, id) = with_a_dead_letter();
    let listed = out(&outbox(&gateway, &["list", "--dead-letter"]));
    assert!(
        listed.contains(&id) && listed.contains("dead letter") && listed.contains("answered 422"),
        "{listed}"
    );
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let all = out(&outbox(&gateway, &["list", "--aggregate", "payment/pay_1"]));
    assert_eq!(all.lines().count(), 3, "it, and the one behind it: {all}");
    let shown = out(&outbox(&gateway, &["show", &id]));
    for part in ["payment/pay_1", "Bad", "refused         2 times", r#"{"number":1}"#, "semel outbox requeue"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(gateway.metric("api_idempotency_outbox_dead_letters"), 1);
    assert_eq!(gateway.metric("api_idempotency_outbox_backlog"), 2);
    shop.receiver.refuses.store(false, Ordering::SeqCst);
    let requeued = outbox(&gateway, &["requeue", &id]);
    assert_eq!(out(&requeued), format!("Requeued {id}.\n"), "{requeued:?}");
    until("the rest", || (shop.receiver.kept().len() == 3).then_some(()));
    assert_eq!(shop.receiver.bodies(), [0, 1, 2].map(|number| format!("{{\"number\":{number}}}")));
    until("its end", || {
        let gone = outbox(&gateway, &["show", &id]);
        (gone.status.code() == Some(1)).then_some(())
    });
}

#[test]
fn a_dead_letter_is_dropped_with_a_reason() {
    let (shop, gateway, id) = with_a_dead_letter();
    let silent = outbox(&gateway, &["drop", &id, "--reason", " ", "--yes"]);
    assert_eq!(silent.status.code(), Some(2), "{silent:?}");
    let dropped = outbox(&gateway, &["drop", &id, "--reason", "the partner has closed", "--yes"]);
    assert_eq!(out(&dropped), format!("Dropped {id}.\n"), "{dropped:?}");
    until("the one behind it", || (shop.receiver.kept().len() == 2).then_some(()));
    assert_eq!(shop.receiver.bodies(), [0, 2].map(|number| format!("{{\"number\":{number}}}")));
    let again = outbox(&gateway, &["requeue", &id]);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let kept = rusqlite::Connection::open(shop.path().join("semel.db")).unwrap();
    let kept: (String, String) = kept
        .query_row("SELECT dropped_by, reason FROM semel_outbox_dropped", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(kept, ("token:admin".into(), "the partner has closed".into()));
}

#[test]
fn what_is_on_its_way_is_left_alone() {
    let (_shop, gateway, _) = with_a_dead_letter();
    let listed = gateway.ask("/v1/outbox?kind=PaymentCaptured").json();
    let behind = listed["events"][0]["event_id"].as_str().unwrap();
    assert_eq!(listed["events"][0]["state"], "waiting");
    let refused = outbox(&gateway, &["drop", behind, "--reason", "why not", "--yes"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("waits behind an earlier event"), "{said}");
    let odd = outbox(&gateway, &["show", "../operations"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(String::from_utf8(odd.stderr).unwrap().contains("event id"));
}

#[test]
fn help_teaches() {
    for command in [&["outbox", "--help"][..], &["outbox", "list", "--help"], &["outbox", "drop", "--help"]] {
        let help = out(&semel().args(command).output().unwrap());
        assert!(help.contains("Examples:"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
    }
}
