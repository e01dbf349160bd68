//! Spellings that a route declares as one, and bodies that are compared by their bytes.

use crate::support::{Ask, Shop};

const ROUTE: &str = "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n[route.fingerprint]\n";

fn json(body: &str) -> Ask {
    Ask::new("application/json", body)
}

#[tokio::test]
async fn declared_spellings_are_one_request_and_other_values_are_not() {
    let shop = Shop::open().await;
    let forms =
        "normalise = { \"/currency\" = \"lowercase\", \"/amount\" = \"decimal\", \"/at\" = \"timestamp\" }\n";
    let door = shop.door(&format!("{ROUTE}{forms}")).await;
    let first = json(r#"{"currency":"EUR","amount":"10.0","at":"2026-11-01T09:00:00Z"}"#);
    let first = door.send("spelt-otherwise-1", &first).await;
    assert_eq!(first.execution(), 1);
    for same in [
        r#"{"currency":"eur","amount":"10.0","at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":"10.00","at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":"10.0","at":"2026-11-01T09:00:00+00:00"}"#,
    ] {
        door.send("spelt-otherwise-1", &json(same)).await.is_replay_of(&first);
    }
    for other in [
        r#"{"currency":"usd","amount":"10.0","at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":"10.01","at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":"10.0","at":"2026-11-01T09:00:00+01:00"}"#,
        r#"{"currency":"EUR","amount":"ten","at":"2026-11-01T09:00:00Z"}"#,
    ] {
        door.send("spelt-otherwise-1", &json(other)).await.is_another_request();
    }
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn an_old_record_is_compared_as_it_was_before_spellings_were_declared() {
    let shop = Shop::open().await;
    let before = shop.door(ROUTE).await;
    let first = before.send("from-before-forms", &json(r#"{"currency":"EUR"}"#)).await;
    before.close().await;
    let declared = shop.door(&format!("{ROUTE}normalise = {{ \"/currency\" = \"lowercase\" }}\n")).await;
    declared.send("from-before-forms", &json(r#"{"currency":"EUR"}"#)).await.is_replay_of(&first);
    declared.send("from-before-forms", &json(r#"{"currency":"eur"}"#)).await.is_another_request();
    let second = declared.send("from-after-forms1", &json(r#"{"currency":"EUR"}"#)).await;
    declared.close().await;
    let after = shop.door(ROUTE).await;
    after.send("from-after-forms1", &json(r#"{"currency":"eur"}"#)).await.is_replay_of(&second);
    assert_eq!(shop.executions(), 2);
}

#[tokio::test]
async fn where_bytes_are_compared_another_spelling_is_another_request() {
    for (number, sections) in [
        format!("{ROUTE}bytes = true\n"),
        // As its protocol has it.
        "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n[profiles.ucp_of_ours]\nextends = \"ucp\"\n"
            .to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let shop = Shop::open().await;
        let profile = if number == 1 { "ucp_of_ours" } else { "ietf" };
        let door = shop.door_with(&format!("profile = \"{profile}\"\n"), &sections).await;
        let key = format!("compared-by-bytes-{number}");
        let first = door.send(&key, &json(r#"{"amount":10,"to":"x"}"#)).await;
        assert_eq!(first.execution(), 1);
        door.send(&key, &json(r#"{"amount":10,"to":"x"}"#)).await.is_replay_of(&first);
        let other = door.send(&key, &json(r#"{"to":"x","amount":10}"#)).await;
        assert_eq!(other.status, if number == 1 { 409 } else { 422 }, "{other:?}");
        assert_eq!(shop.executions(), 1);
    }
}
