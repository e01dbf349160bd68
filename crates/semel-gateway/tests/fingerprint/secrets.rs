//! Fingerprints are keyed with a secret in the store: what a thief can learn from it, and what keeps matching.

use crate::support::{Ask, Shop};
use http::{HeaderMap, HeaderValue, Method};
use semel::fingerprint::{FingerprintSecret, HttpRequest, Recipe, fingerprint};
use semel::seal::{Keyring, SealingKey};
use semel::{Engine, EngineOptions, Filter, Fingerprint, Store};
use semel_sqlite::SqliteStore;
use semel_worker::{RekeyOptions, Rekeyer};
use std::sync::Arc;

pub(crate) const KEY: &str = "one-key-one-secret";
pub(crate) const ROUTE: &str = "[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n";

/// An `[encryption]` with these keys, each of 32 times the same byte; the first seals.
pub(crate) fn encryption(keys: &[(&str, u8)]) -> String {
    let keys: Vec<_> = keys
        .iter()
        .map(|(id, byte)| format!("{{ id = \"{id}\", key = \"{}\" }}", format!("{byte:02x}").repeat(32)))
        .collect();
    format!("{ROUTE}[encryption]\nkeys = [{}]\n", keys.join(", "))
}

pub(crate) async fn opened(shop: &Shop) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(shop.file()).await.unwrap())
}

/// What somebody with the file knows of the only record: its fingerprint, its recipe, and what is stored where secrets are.
async fn stolen(shop: &Shop) -> (Fingerprint, Recipe, Vec<FingerprintSecret>) {
    let store = opened(shop).await;
    let page = store.list(Filter::default(), None, 10).await.unwrap();
    let [record] = &page.records[..] else { panic!("{page:?}") };
    let text = store.recall(format!("recipe/{}", record.recipe)).await.unwrap().unwrap();
    let recipe = Recipe::from_text(std::str::from_utf8(&text).unwrap()).unwrap();
    let mut secrets = Vec::new();
    for name in ["plain/0", "sealed/one/0"] {
        let kept = store.recall(format!("secret/fingerprints/{name}")).await.unwrap();
        secrets.extend(kept.and_then(|bytes| FingerprintSecret::new(bytes).ok()));
    }
    (record.fingerprint, recipe, secrets)
}

/// Whether a thief who has guessed the request finds that confirmed.
fn is_confirmed((stored, recipe, secrets): &(Fingerprint, Recipe, Vec<FingerprintSecret>)) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let guess = HttpRequest {
        operation: "pay",
        method: &Method::POST,
        path: "/payments",
        query: None,
        host: Some(b"shop.example"),
        headers: &headers,
        body: br#"{"amount":10}"#,
    };
    let unkeyed = recipe.to_text().replace(&format!("\"secret\":\"{}\",", recipe.secret_id().unwrap()), "");
    let unkeyed = fingerprint(&Recipe::from_text(&unkeyed).unwrap(), None, &guess);
    let keyed = secrets.iter().map(|secret| fingerprint(recipe, Some(secret), &guess));
    keyed.chain([unkeyed]).any(|made| made == Ok(*stored))
}

#[tokio::test]
async fn a_guess_is_confirmed_by_the_whole_file_alone_and_with_keys_not_even_by_that() {
    let shop = Shop::open().await;
    let door = shop.door(ROUTE).await;
    door.send(KEY, &Ask::json()).await.execution();
    door.close().await;
    let (record, recipe, secrets) = stolen(&shop).await;
    assert!(!is_confirmed(&(record, recipe.clone(), Vec::new())), "records and recipes alone tell nothing");
    assert!(is_confirmed(&(record, recipe, secrets)), "the secret is in the same file, in the clear");

    let shop = Shop::open().await;
    let door = shop.door(&encryption(&[("one", 1)])).await;
    door.send(KEY, &Ask::json()).await.execution();
    door.close().await;
    let stolen = stolen(&shop).await;
    assert_eq!(stolen.2.len(), 1, "there is something to try");
    assert!(!is_confirmed(&stolen));
}

#[tokio::test]
async fn gateways_on_one_store_agree_and_a_restart_changes_nothing() {
    let shop = Shop::open().await;
    // Both start on a new file at once: one of them makes the secret.
    let (one, other) = tokio::join!(shop.door(ROUTE), shop.door(ROUTE));
    let first = one.send(KEY, &Ask::json()).await;
    other.send(KEY, &Ask::json()).await.is_replay_of(&first);
    other.send(KEY, &Ask::json().host("other.example")).await.is_another_request();
    one.close().await;
    other.close().await;
    shop.door(ROUTE).await.send(KEY, &Ask::json()).await.is_replay_of(&first);
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn records_keep_matching_while_keys_come_and_go() {
    let shop = Shop::open().await;
    let mut firsts = Vec::new();
    let all = [("one", 1), ("two", 2)];
    let steps = [ROUTE.to_owned(), encryption(&all[..1]), encryption(&[all[1], all[0]])];
    for (number, sections) in steps.iter().enumerate() {
        let door = shop.door(sections).await;
        for (earlier, first) in firsts.iter().enumerate() {
            door.send(&format!("key-of-step-number-{earlier}"), &Ask::json()).await.is_replay_of(first);
        }
        firsts.push(door.send(&format!("key-of-step-number-{number}"), &Ask::json()).await);
        door.close().await;
    }
    let keys = [("two", 2), ("one", 1)].map(|(id, byte)| SealingKey::new(id, &[byte; 32]).unwrap());
    let options = EngineOptions { keyring: Keyring::new(keys).ok(), ..EngineOptions::default() };
    let rekeyer = Rekeyer::new(Engine::with_options(opened(&shop).await, options), RekeyOptions::default());
    assert!(rekeyer.run(|_| ()).await.unwrap().is_complete());

    // The first key is gone, and what was made under it is still compared.
    let door = shop.door(&encryption(&all[1..])).await;
    for (earlier, first) in firsts.iter().enumerate() {
        let key = format!("key-of-step-number-{earlier}");
        door.send(&key, &Ask::json()).await.is_replay_of(first);
        door.send(&key, &Ask::json().host("other.example")).await.is_another_request();
    }
    assert_eq!(shop.executions(), 3);
}

#[tokio::test]
async fn a_gateway_that_meets_a_secret_made_after_its_start_looks_for_it() {
    let shop = Shop::open().await;
    // A store that was used without keys has plain client keys, which a gateway without keys can look up.
    shop.door(ROUTE).await.send("a-key-from-before", &Ask::json()).await;
    let opening = format!("{}seal_with = \"none\"\n", encryption(&[("one", 1)]));
    let early = shop.door(&opening).await;
    let late = shop.door(&encryption(&[("one", 1)])).await;
    let first = late.send(KEY, &Ask::json()).await;
    early.send(KEY, &Ask::json()).await.is_replay_of(&first);
    early.send(KEY, &Ask::json().host("other.example")).await.is_another_request();
    // Whoever does not have the key cannot say.
    let keyless = shop.door(ROUTE).await;
    let answer = keyless.send(KEY, &Ask::json()).await;
    assert_eq!(answer.status, 409, "{answer:?}");
    assert_eq!(shop.executions(), 2);
}
