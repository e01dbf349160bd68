//! Bad days by seed: they can be had again.

use crate::harness::{Client, start, terms};
use payment_provider::Settings;
use serde_json::json;

const RATES: &str = "drop-after=0.2,error-after=0.15,decline=0.15,reject=0.1,drop-before=0.1,lose-every=11";

/// What becomes of forty charges, one after the other: the status, or none, and the effects.
async fn fates(client: Client, day: &str) -> Vec<(Option<u16>, u64)> {
    let mut fates = Vec::new();
    for number in 0..40 {
        let identity = format!("{day}-{number}");
        let answer = client.try_post("/charges", &identity, &[], &terms("1.00")).await.ok();
        fates.push((answer.map(|answer| answer.status), client.effects(&identity).await));
    }
    fates
}

#[tokio::test]
async fn the_same_seed_makes_the_same_day() {
    let settings = || Settings { misbehave: RATES.parse().unwrap(), seed: 7, ..Settings::default() };
    let provider = start(settings()).await;
    let monday = fates(provider.client, "monday").await;
    for fate in [(Some(201), 1), (None, 1), (None, 0), (Some(500), 1), (Some(402), 0), (Some(503), 0)] {
        assert!(monday.contains(&fate), "{fate:?} never came: {monday:?}");
    }
    assert_eq!(fates(start(settings()).await.client, "monday").await, monday, "in another process");

    provider.client.set(&json!({ "seed": 7 })).await;
    assert_eq!(fates(provider.client, "tuesday").await, monday, "after the seed was set again");
    provider.client.set(&json!({ "seed": 8 })).await;
    assert_ne!(fates(provider.client, "wednesday").await, monday);
}
