//! Changing settings while it runs, and looking into the ledger.

use crate::harness::start;
use payment_provider::Settings;
use serde_json::json;

#[tokio::test]
async fn settings_can_be_changed_one_by_one() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let mut expected = json!({
        "deduplicates": true, "queryable": true, "misbehave": {}, "seed": 0, "stall": "60s", "webhook": null
    });
    assert_eq!(client.get("/settings").await.json(), expected);

    client.charge("order-1", "1.00").await;
    expected["deduplicates"] = false.into();
    assert_eq!(client.set(&json!({ "deduplicates": false })).await.json(), expected);
    client.charge("order-1", "1.00").await;
    assert_eq!(client.effects("order-1").await, 2);

    expected["queryable"] = false.into();
    expected["misbehave"] = json!({ "decline": 1.0, "lose-every": 50 });
    expected["stall"] = "1500ms".into();
    let change =
        json!({ "queryable": false, "misbehave": { "decline": 1, "lose-every": 50 }, "stall": "1500ms" });
    assert_eq!(client.set(&change).await.json(), expected);
    assert_eq!(client.charge("order-2", "1.00").await.status, 402);
    assert_eq!(client.ask("order-2", 1).await.status, 501);

    // What is shown can be sent back.
    assert_eq!(client.set(&expected).await.json(), expected);
}

#[tokio::test]
async fn a_webhook_is_set_changed_and_taken_away_and_its_secret_is_not_shown() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let (url, secret) = ("http://127.0.0.1:9/hook", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let set = client.set(&json!({ "webhook": { "url": url, "secret": secret, "duplicate": 0.5 } })).await;
    assert_eq!(set.status, 200);
    assert!(!String::from_utf8_lossy(&set.body).contains("MfKQ"));
    assert_eq!(set.json()["webhook"]["url"], url);
    let changed = client.set(&json!({ "webhook": { "shuffle": 5 } })).await.json();
    let webhook = &changed["webhook"];
    assert_eq!(
        (&webhook["duplicate"], &webhook["shuffle"], &webhook["url"]),
        (&0.5.into(), &5.into(), &url.into())
    );
    // Nothing is said of it: it stays.
    assert_eq!(client.set(&json!({ "seed": 1 })).await.json()["webhook"], changed["webhook"]);
    assert_eq!(client.set(&json!({ "webhook": null })).await.json()["webhook"], json!(null));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let before = client.get("/settings").await.json();
    let url = "http://127.0.0.1:9/";
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    for change in [
        json!({ "deduplicate": false }),
        json!({ "misbehave": { "drop": 0.1 } }),
        json!({ "misbehave": { "drop-after": 2 } }),
        json!({ "stall": 60 }),
        json!({ "webhook": { "url": url } }),
        json!({ "webhook": { "url": url, "secret": "x" } }),
        json!({ "webhook": { "url": "https://127.0.0.1/", "secret": secret } }),
        json!({ "webhook": { "url": url, "secret": secret, "concurrent": 0 } }),
        json!({ "seed": 1, "webhook": { "url": url, "secret": secret, "duplicate": 1.5 } }),
    ] {
        let answer = client.set(&change).await;
        assert_eq!(answer.code(), (400, "request_invalid".into()), "{change}");
        assert!(!String::from_utf8_lossy(&answer.body).contains("MfKQ"));
    }
    assert_eq!(client.get("/settings").await.json(), before);
}

#[tokio::test]
async fn the_ledger_is_listed_page_by_page() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    assert_eq!(client.get("/healthz").await.status, 200);
    client
        .charge_with("order-1", "1.00", &[("semel-operation-id", "01890000-0000-7000-8000-000000000007")])
        .await;
    client.ask("order-2", 1).await;
    client.charge_with("order-3", "1.00", &[("x-provider-mode", "decline")]).await;
    let first = client.get("/ledger?limit=2").await.json();
    let kinds = |page: &serde_json::Value| -> Vec<String> {
        page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds(&first), ["charge", "sealed"]);
    assert_eq!(first["next"], 2);
    assert_eq!(first["entries"][0]["operation_id"], "01890000-0000-7000-8000-000000000007");
    let second = client.get("/ledger?limit=2&after=2").await.json();
    assert_eq!((kinds(&second), &second["next"]), (vec!["declined".to_owned()], &json!(null)));
    assert_eq!(client.get("/ledger?after=99").await.json()["entries"], json!([]));
    // What is listed is what the file holds.
    let lines = std::fs::read_to_string(&provider.ledger).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(client.get("/ledger").await.json()["entries"], json!(lines));
    let of_one = client.get("/ledger/by-identity/order-3").await.json();
    assert_eq!(
        (&of_one["effects"], &of_one["declined"], &of_one["entries"][0]),
        (&0.into(), &1.into(), &lines[2])
    );
}
