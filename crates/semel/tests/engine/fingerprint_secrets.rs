//! The secrets of fingerprints: one for all instances on a store, sealed where there are keys, and found again under other keys.

use semel::fingerprint::Recipe;
use semel::seal::{Keyring, SealingKey, sealed_by};
use semel::{Engine, EngineOptions, MemoryStore, Store, StoreError};
use std::sync::Arc;

fn key(id: &str, byte: u8) -> SealingKey {
    SealingKey::new(id, &[byte; 32]).unwrap()
}

fn keyring(keys: &[(&str, u8)]) -> Option<Keyring> {
    (!keys.is_empty()).then(|| Keyring::new(keys.iter().map(|(id, byte)| key(id, *byte))).unwrap())
}

fn engine(store: &Arc<dyn Store>, keyring: Option<Keyring>) -> Engine {
    Engine::with_options(Arc::clone(store), EngineOptions { keyring, ..EngineOptions::default() })
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

fn plain() -> Arc<Recipe> {
    Arc::new(Recipe::default())
}

async fn keyed(engine: &Engine) -> Arc<Recipe> {
    engine.keyed_recipe(&plain()).await.unwrap()
}

#[tokio::test]
async fn all_instances_key_with_the_secret_that_is_remembered_first() {
    let store = store();
    let engines: Vec<Engine> = (0..8).map(|_| engine(&store, None)).collect();
    // All of them at once: each brings a secret of its own, and one wins.
    let mut asked = tokio::task::JoinSet::new();
    for engine in engines {
        asked.spawn(async move { keyed(&engine).await.id() });
    }
    let ids: std::collections::HashSet<_> = asked.join_all().await.into_iter().collect();
    assert_eq!(ids.len(), 1);
    assert_ne!(ids.into_iter().next(), Some(plain().id()), "it is keyed");
    assert!(store.recall("secret/fingerprints/plain/0".into()).await.unwrap().is_some());
}

#[tokio::test]
async fn a_recipe_with_a_secret_of_its_own_keeps_it() {
    let own = semel::fingerprint::FingerprintSecret::new([7; 32]).unwrap();
    let recipe = Arc::new(Recipe::builder().secret(&own).build().unwrap());
    let engine = engine(&store(), None);
    assert_eq!(engine.keyed_recipe(&recipe).await.unwrap(), recipe);
}

#[tokio::test]
async fn with_keys_the_secret_is_never_in_the_clear_and_another_than_before() {
    let store = store();
    let before = keyed(&engine(&store, None)).await;
    let sealing = engine(&store, keyring(&[("one", 1)]));
    let after = keyed(&sealing).await;
    assert_ne!(before.secret_id(), after.secret_id(), "what was in the clear once is not used again");
    let kept = store.recall("secret/fingerprints/sealed/one/0".into()).await.unwrap().unwrap();
    assert_eq!(sealed_by(&kept), Some("one"));
    assert_eq!(keyed(&engine(&store, keyring(&[("one", 1)]))).await, after);
    // A running engine that is given the key changes over; a request has to ask the store once.
    let running = engine(&store, None);
    assert_eq!(keyed(&running).await, before);
    running.set_keyring(keyring(&[("one", 1)]));
    assert_eq!(keyed(&running).await, after);
}

#[tokio::test]
async fn a_secret_that_does_not_open_or_was_put_there_by_others_is_refused() {
    let store = store();
    keyed(&engine(&store, keyring(&[("one", 1)]))).await;
    let namesake = engine(&store, keyring(&[("one", 2)]));
    let refused = namesake.keyed_recipe(&plain()).await;
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
    let check = namesake.check_fingerprint_secret(keyring(&[("one", 2)]).as_ref()).await;
    assert!(check.unwrap_err().to_string().contains("cannot be decrypted"));
    // In the clear, where a sealed one belongs.
    store.remember("secret/fingerprints/sealed/two/0".into(), vec![7; 32].into()).await.unwrap();
    let other = engine(&store, keyring(&[("two", 2)]));
    assert!(matches!(other.keyed_recipe(&plain()).await, Err(StoreError::Damaged(_))));
}

#[tokio::test]
async fn rekeying_puts_every_secret_under_the_key_that_seals_once() {
    let store = store();
    keyed(&engine(&store, keyring(&[("one", 1)]))).await;
    let both = || keyring(&[("two", 2), ("one", 1)]);
    let second = keyed(&engine(&store, both())).await;
    assert_eq!(engine(&store, both()).rekey_fingerprint_secrets().await.unwrap(), 1);
    assert_eq!(engine(&store, both()).rekey_fingerprint_secrets().await.unwrap(), 0, "it is there");
    let name = |key: &str, number: u8| format!("secret/fingerprints/sealed/{key}/{number}");
    let kept = store.recall(name("two", 1)).await.unwrap().unwrap();
    assert_eq!(sealed_by(&kept), Some("two"));
    assert_eq!(keyed(&engine(&store, keyring(&[("two", 2)]))).await, second, "for new ones nothing changes");
    // Back to the first key: it gets the second's, and the second stays what it is.
    let back = || keyring(&[("one", 1), ("two", 2)]);
    assert_eq!(engine(&store, back()).rekey_fingerprint_secrets().await.unwrap(), 1);
    assert!(store.recall(name("one", 1)).await.unwrap().is_some());
    // Without a seal again: both are there in the clear.
    let opening = || back().map(Keyring::open_only);
    assert_eq!(engine(&store, opening()).rekey_fingerprint_secrets().await.unwrap(), 2);
    assert!(store.recall("secret/fingerprints/plain/2".into()).await.unwrap().is_some());
}
