//! A retry of an old request after a deploy that changed what makes two requests the same.

use crate::support::{Ask, Server, Shop};
use semel::fingerprint::{FingerprintSecret, Recipe};
use semel_tower::{IdempotencyLayer, Protection};
use std::sync::Arc;

/// Another instance on the same file, with this recipe.
async fn deployed(shop: &Shop, recipe: Recipe, secret: Option<FingerprintSecret>) -> Server {
    let store = semel_sqlite::SqliteOptions::new().clock(shop.clock.clone()).open(shop.file()).await.unwrap();
    let protection = Protection { recipe: Arc::new(recipe), ..Protection::default() };
    let layer = IdempotencyLayer::new(store).protect_writes(protection).unwrap();
    let layer = secret.into_iter().fold(layer, IdempotencyLayer::fingerprint_secret);
    Server::start(shop.till.clone().router().layer(layer)).await
}

fn traced(trace: &'static str) -> Ask {
    Ask::payment().json(trace)
}

const ONE: &str = r#"{"amount":"10.00","trace":"one"}"#;
const TWO: &str = r#"{"amount":"10.00","trace":"two"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_old_request_is_compared_by_its_own_rules_and_a_new_one_by_the_new() {
    let shop = Shop::open().await;
    let first = shop.send(&traced(ONE)).await;
    let server = deployed(&shop, Recipe::builder().ignore("/trace").build().unwrap(), None).await;
    let replay = traced(ONE).send(&server).await;
    assert_eq!((replay.status, &replay.body, replay.is_replay()), (201, &first.body, true));
    assert_eq!(traced(TWO).send(&server).await.status, 422, "when it was made, the trace counted");

    let new = |body| traced(body).key("key-after-the-deploy");
    assert_eq!(new(ONE).send(&server).await.text(), "effect 2");
    assert_eq!(new(TWO).send(&server).await.text(), "effect 2");
    // The old instance is still there, and compares by the new rules what was made by them.
    assert_eq!(shop.send(&new(TWO)).await.text(), "effect 2");
    assert_eq!(shop.till.effects(), 2);
}

/// What every instance compared by before there was a second version.
fn first_version() -> Recipe {
    Recipe::from_text(r#"{"version":1}"#).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_an_earlier_version_is_compared_as_it_was_then() {
    let shop = Shop::open().await;
    let before = deployed(&shop, first_version(), None).await;
    let now = deployed(&shop, Recipe::default(), None).await;
    let form = |body: &'static str| {
        let ask = Ask::payment().without("content-type").body(body);
        ask.header("Content-Type", "application/x-www-form-urlencoded")
    };
    let first = form("a[]=1&b=2&a[]=3").send(&before).await;
    assert_eq!(first.status, 201);
    for server in [&before, &now] {
        let retry = form("a[]=1&a[]=3&b=2").send(server).await;
        assert_eq!((retry.status, retry.is_replay()), (201, true), "then the order did not count");
        assert_eq!(form("a[]=1&b=2").send(server).await.status, 422);
    }
    let new = |body| form(body).key("key-after-the-deploy");
    assert_eq!(new("a[]=1&b=2&a[]=3").send(&now).await.status, 201);
    for server in [&before, &now] {
        assert_eq!(new("a[]=1&a[]=3&b=2").send(server).await.status, 422, "now it does");
        assert!(new("a[]=1&b=2&a[]=3").send(server).await.is_replay());
    }
    assert_eq!(shop.till.effects(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_counts_in_the_layer_where_it_is_asked_for() {
    let shop = Shop::open().await;
    let silent = deployed(&shop, Recipe::default(), None).await;
    let on = |host: &str| Ask::payment().header("Host", host);
    assert_eq!(on("a.example").send(&silent).await.status, 201);
    assert!(on("b.example").send(&silent).await.is_replay());
    let counting = deployed(&shop, Recipe::builder().host().build().unwrap(), None).await;
    let on = |host: &str| on(host).key("key-with-a-host-name");
    assert_eq!(on("a.example").send(&counting).await.status, 201);
    assert!(on("A.example:80").send(&counting).await.is_replay());
    assert_eq!(on("b.example").send(&counting).await.status, 422);
    assert_eq!(shop.till.effects(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_counts_makes_another_request() {
    let shop = Shop::open().await;
    let server = deployed(&shop, Recipe::builder().header("api-version").build().unwrap(), None).await;
    let versioned = |version: &str| Ask::payment().header("Api-Version", version);
    assert_eq!(versioned("1").send(&server).await.status, 201);
    assert!(versioned("1").send(&server).await.is_replay());
    assert_eq!(versioned("2").send(&server).await.status, 422);
    assert_eq!(Ask::payment().send(&server).await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_are_not_to_be_had_give_409_and_never_422() {
    let shop = Shop::open().await;
    let secret = FingerprintSecret::new([7; 32]).unwrap();
    let keyed = Recipe::builder().secret(&secret).build().unwrap();
    let server = deployed(&shop, keyed.clone(), Some(secret)).await;
    let first = Ask::payment().send(&server).await;
    assert_eq!(first.status, 201);
    assert!(Ask::payment().send(&server).await.is_replay());
    // This instance does not have the secret: it cannot say whether the request is the same.
    for ask in [Ask::payment(), Ask::payment().json("{}")] {
        let answer = shop.send(&ask).await;
        assert_eq!((answer.status, answer.operation_id()), (409, first.operation_id()));
        assert_eq!(answer.json()["retryable"], true);
        assert!(answer.header("retry-after").is_some());
        assert_eq!(answer.code(), "idempotency_outcome_unknown");
    }
    // And one that is told to use a secret that it does not have executes nothing.
    let without = deployed(&shop, keyed, None).await;
    assert_eq!(Ask::payment().key("key-without-a-secret").send(&without).await.status, 503);
    assert_eq!(shop.till.effects(), 1);
}
