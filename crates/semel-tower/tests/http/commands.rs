//! Requests compared by the command that the handler reads in them.

use crate::support::{Ask, Server, Shop};
use semel::fingerprint::{Command, Recipe};
use semel_tower::{CommandOf, IdempotencyLayer, Protection};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the handler takes a body for. It ignores every other member, and pays in euros if nothing else is said.
#[derive(Deserialize, Serialize)]
struct Pay {
    amount: u64,
    #[serde(default = "euros")]
    currency: String,
}

fn euros() -> String {
    "EUR".into()
}

/// What it was in an earlier deploy: the currency was not looked at.
#[derive(Serialize)]
struct PayFirst {
    amount: u64,
}

fn recipe(name_and_version: &str) -> Arc<Recipe> {
    Arc::new(Recipe::builder().command(name_and_version).build().unwrap())
}

fn protection(read: CommandOf) -> Protection {
    Protection { command: Some(read), ..Protection::default() }
}

fn paying() -> Protection {
    let recipe = recipe("pay/2");
    protection(CommandOf::new(move |_, body| {
        let pay: Pay = serde_json::from_slice(body).ok()?;
        let command = Command::new(Arc::clone(&recipe), None, &pay).ok()?;
        command.formerly("pay/1", &PayFirst { amount: pay.amount }).ok()
    }))
}

fn paying_at_first() -> Protection {
    let recipe = recipe("pay/1");
    protection(CommandOf::new(move |_, body| {
        let pay: Pay = serde_json::from_slice(body).ok()?;
        Command::new(Arc::clone(&recipe), None, &PayFirst { amount: pay.amount }).ok()
    }))
}

/// Another instance on the shop's file.
async fn deployed(shop: &Shop, protection: Protection) -> Server {
    let store = semel_sqlite::SqliteOptions::new().clock(shop.clock.clone()).open(shop.file()).await.unwrap();
    let layer = IdempotencyLayer::new(store).protect_writes(protection).unwrap();
    Server::start(shop.till.clone().router().layer(layer)).await
}

fn pay(body: &'static str) -> Ask {
    Ask::payment().json(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_handler_takes_for_one_command_is_one_request() {
    let shop = Shop::protected(paying()).await;
    let first = shop.send(&pay(r#"{"amount":10}"#)).await;
    assert_eq!(first.status, 201);
    for same in [r#"{"currency":"EUR","amount":10}"#, r#"{"amount":10,"trace":"another attempt"}"#] {
        assert!(shop.send(&pay(same)).await.is_replay(), "{same}");
    }
    let spelt = Ask::payment().without("content-type").header("Content-Type", "text/json");
    assert!(shop.send(&spelt.body(r#"{"amount":10}"#)).await.is_replay(), "the command is what it is");
    for other in [r#"{"amount":11}"#, r#"{"amount":10,"currency":"USD"}"#] {
        assert_eq!(shop.send(&pay(other)).await.status, 422, "{other}");
    }
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_another_path_or_query_is_another_request() {
    let protection: semel_tower::ValidProtection = paying().try_into().unwrap();
    // All paths are one operation, as those of one route with parameters are.
    let select = move |_: &http::request::Parts| Some(("note".to_owned(), protection.clone()));
    let shop = Shop::layered(|layer| layer.protect(select)).await;
    let on = |path| Ask::new("POST", path).key("key-of-two-payments").json(r#"{"amount":10}"#);
    let first = shop.send(&on("/payments/1/notes")).await;
    assert!(!first.is_replay());
    assert!(shop.send(&on("/payments/1/notes")).await.is_replay());
    for other in ["/payments/2/notes", "/payments/1/notes?dry_run=true"] {
        assert_eq!(shop.send(&on(other)).await.status, 422, "{other}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_which_no_command_can_be_made_is_compared_as_it_is() {
    let shop = Shop::protected(paying()).await;
    let first = shop.send(&pay(r#"{"amount":"ten","currency":"EUR"}"#)).await;
    assert_eq!(first.status, 201);
    assert!(shop.send(&pay(r#"{"currency":"EUR","amount":"ten"}"#)).await.is_replay());
    assert_eq!(shop.send(&pay(r#"{"amount":"ten"}"#)).await.status, 422);
    assert_eq!(shop.send(&pay(r#"{"amount":10}"#)).await.status, 422);
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_from_before_there_was_a_command_is_compared_as_it_was_then() {
    let shop = Shop::open().await;
    assert_eq!(shop.send(&pay(r#"{"amount":10,"currency":"EUR"}"#)).await.status, 201);
    let now = deployed(&shop, paying()).await;
    assert!(pay(r#"{"currency":"EUR","amount":10}"#).send(&now).await.is_replay());
    assert_eq!(pay(r#"{"amount":10}"#).send(&now).await.status, 422, "then a body was compared");
    // Whoever does not know the command cannot tell, and executes nothing.
    let new = pay(r#"{"amount":10}"#).key("key-after-the-deploy");
    assert_eq!(new.send(&now).await.status, 201);
    let answer = shop.send(&new).await;
    assert_eq!((answer.status, answer.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(shop.till.effects(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_an_earlier_version_of_its_type_is_compared_by_that() {
    let shop = Shop::protected(paying_at_first()).await;
    assert_eq!(shop.send(&pay(r#"{"amount":10,"currency":"USD"}"#)).await.status, 201);
    let now = deployed(&shop, paying()).await;
    assert!(pay(r#"{"amount":10,"currency":"EUR"}"#).send(&now).await.is_replay());
    assert_eq!(pay(r#"{"amount":11}"#).send(&now).await.status, 422);
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_read_and_compared_on_another_thread() {
    let shop = Shop::protected(paying()).await;
    let large = |padding: &str, amount: u64| {
        let body = format!(r#"{{"padding":"{}","amount":{amount}}}"#, padding.repeat(50_000));
        Ask::payment().without("content-type").header("Content-Type", "application/json").body(body)
    };
    assert_eq!(shop.send(&large("a", 10)).await.status, 201);
    assert!(shop.send(&large("b", 10)).await.is_replay());
    assert_eq!(shop.send(&large("a", 11)).await.status, 422);
    assert_eq!(shop.till.effects(), 1);
}
