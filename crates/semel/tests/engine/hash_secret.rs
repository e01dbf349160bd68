//! The secret of keyed hashes, which tells callers apart by their credentials: with keys it is never in the store in the clear, and it is the same
//! secret before and after it is sealed, since another one would make every caller a new tenant, whose retries execute again.

use bytes::Bytes;
use semel::fingerprint::FingerprintSecret;
use semel::seal::{Keyring, SealingKey, sealed_by};
use semel::{Engine, EngineOptions, MemoryStore, Store, StoreError};
use semel_testing::store::{Call, Fault, FaultyStore, Gate};
use std::sync::Arc;

const NAME: &str = "secret/keyed-hashes";
const SEALED: &str = "secret/keyed-hashes/sealed";

/// Keys of these names, each of its own bytes; the first seals.
fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

struct Shop {
    store: FaultyStore,
}

impl Shop {
    fn new() -> Self {
        Self { store: FaultyStore::over(MemoryStore::new()) }
    }

    /// A store of before: the secret is in it in the clear. Its id.
    async fn with_clear_secret(&self) -> String {
        self.id(None).await.unwrap()
    }

    fn engine(&self, keyring: Option<Keyring>) -> Engine {
        let options = EngineOptions { keyring, ..EngineOptions::default() };
        Engine::with_options(Arc::new(self.store.clone()), options)
    }

    /// The id of the secret, as an instance that starts now has it.
    async fn id(&self, keyring: Option<Keyring>) -> Result<String, StoreError> {
        Ok(self.engine(keyring).shared_secret().await?.id().to_owned())
    }

    async fn kept(&self, name: &str) -> Option<Bytes> {
        self.store.recall(name.into()).await.unwrap()
    }

    /// Whether somebody who has the store has the secret of this id.
    async fn tells(&self, id: &str) -> bool {
        let kept = [self.kept(NAME).await, self.kept(SEALED).await];
        kept.iter().flatten().any(|bytes| FingerprintSecret::new(bytes).is_ok_and(|it| it.id() == id))
    }
}

#[tokio::test]
async fn a_new_store_with_keys_never_has_the_secret_in_the_clear() {
    let shop = Shop::new();
    let id = shop.id(Some(keyring(&["a"]))).await.unwrap();
    assert!(!shop.tells(&id).await);
    assert_eq!(sealed_by(&shop.kept(SEALED).await.unwrap()), Some("a"));
    assert_eq!(shop.id(Some(keyring(&["a"]))).await.unwrap(), id, "all instances agree");
    // Without the key nobody is told apart by another secret.
    let refused = shop.id(None).await.unwrap_err().to_string();
    assert!(refused.contains("\"a\", which is not configured"), "{refused}");
    for keys in [None, Some(keyring(&["b"]))] {
        let refused = shop.engine(keys.clone()).check_keyring(keys.as_ref()).await;
        assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn without_keys_it_stays_in_the_clear() {
    let shop = Shop::new();
    let id = shop.with_clear_secret().await;
    assert!(shop.tells(&id).await);
    shop.engine(None).check_keyring(None).await.unwrap();
}

#[tokio::test]
async fn rekeying_seals_the_secret_of_before_and_it_stays_the_same_one() {
    let shop = Shop::new();
    let id = shop.with_clear_secret().await;
    let engine = shop.engine(Some(keyring(&["a"])));
    assert_eq!(engine.shared_secret().await.unwrap().id(), id, "tenants stay who they are");
    assert_eq!(engine.reseal_secrets().await.unwrap(), 1);
    assert_eq!(engine.reseal_secrets().await.unwrap(), 0);
    assert!(!shop.tells(&id).await);
    assert_eq!(shop.id(Some(keyring(&["a"]))).await.unwrap(), id);
    // A build of before takes whatever is under the name for the secret, unless it is too short for one.
    assert!(FingerprintSecret::new(shop.kept(NAME).await.unwrap()).is_err());
    assert!(shop.id(None).await.is_err());
}

#[tokio::test]
async fn another_key_reseals_it_and_the_earlier_one_is_not_needed_any_more() {
    let shop = Shop::new();
    let id = shop.id(Some(keyring(&["a"]))).await.unwrap();
    assert_eq!(shop.engine(Some(keyring(&["b", "a"]))).reseal_secrets().await.unwrap(), 1);
    assert_eq!(shop.id(Some(keyring(&["b"]))).await.unwrap(), id);
    assert!(shop.id(Some(keyring(&["a"]))).await.is_err());
}

#[tokio::test]
async fn keys_that_only_open_put_it_back_in_the_clear_and_it_can_be_sealed_again() {
    let shop = Shop::new();
    let id = shop.id(Some(keyring(&["a"]))).await.unwrap();
    assert_eq!(shop.engine(Some(keyring(&["a"]).open_only())).reseal_secrets().await.unwrap(), 1);
    assert_eq!(shop.id(None).await.unwrap(), id);
    assert_eq!(shop.engine(Some(keyring(&["b"]).open_only())).reseal_secrets().await.unwrap(), 0);
    // By a key that does not open what the first one has left.
    assert_eq!(shop.engine(Some(keyring(&["b"]))).reseal_secrets().await.unwrap(), 1);
    assert_eq!(shop.id(Some(keyring(&["b"]))).await.unwrap(), id);
    assert!(!shop.tells(&id).await);
}

#[tokio::test]
async fn whatever_step_is_the_last_one_the_secret_is_the_same_and_the_next_run_ends_it() {
    use Fault::{LostAnswer, None, Unavailable};
    // What `rekey` writes: the sealed secret under its own name, then the mark in the place of the clear one.
    for (call, faults) in [
        (Call::Remember, vec![Unavailable]),
        (Call::Remember, vec![LostAnswer]),
        (Call::Replace, vec![Unavailable]),
        (Call::Replace, vec![LostAnswer]),
        // One that began with another key has left its seal.
        (Call::Replace, vec![None, Unavailable]),
    ] {
        let shop = Shop::new();
        let id = shop.with_clear_secret().await;
        if faults.len() > 1 {
            shop.store.next(Call::Replace, [Unavailable]);
            shop.engine(Some(keyring(&["b"]))).reseal_secrets().await.unwrap_err();
        }
        shop.store.next(call, faults);
        shop.engine(Some(keyring(&["a"]))).reseal_secrets().await.unwrap_err();
        shop.store.heal();
        assert_eq!(shop.id(Some(keyring(&["a"]))).await.unwrap(), id, "{call:?}");
        match shop.id(Option::None).await {
            Ok(same) => assert_eq!(same, id),
            Err(error) => assert!(matches!(error, StoreError::Damaged(_))),
        }
        shop.engine(Some(keyring(&["a"]))).reseal_secrets().await.unwrap();
        assert!(!shop.tells(&id).await);
        assert_eq!(shop.id(Some(keyring(&["a"]))).await.unwrap(), id);
    }
}

#[tokio::test]
async fn a_first_instance_that_ends_half_way_leaves_nothing_that_counts() {
    for fault in [Fault::Unavailable, Fault::LostAnswer] {
        let shop = Shop::new();
        shop.store.next(Call::Remember, [Fault::None, fault]);
        shop.id(Some(keyring(&["a"]))).await.unwrap_err();
        let id = shop.id(Some(keyring(&["a"]))).await.unwrap();
        assert_eq!(shop.id(Some(keyring(&["a"]))).await.unwrap(), id);
        assert!(!shop.tells(&id).await);
    }
}

#[tokio::test]
async fn a_seal_that_counts_for_nothing_is_in_nobodys_way() {
    let shop = Shop::new();
    shop.store.next(Call::Remember, [Fault::None, Fault::Unavailable]);
    shop.id(Some(keyring(&["a"]))).await.unwrap_err();
    assert_eq!(shop.engine(Some(keyring(&["b"]))).reseal_secrets().await.unwrap(), 0);
    let id = shop.with_clear_secret().await;
    assert_eq!(shop.engine(Some(keyring(&["b"]))).reseal_secrets().await.unwrap(), 1);
    assert_eq!(shop.id(Some(keyring(&["b"]))).await.unwrap(), id);
}

#[tokio::test]
async fn whoever_was_first_without_keys_has_decided() {
    let shop = Arc::new(Shop::new());
    // An instance with keys has looked and found nothing, and is held before it writes.
    let gate = Gate::new();
    shop.store.next(Call::Remember, [Fault::Held(Arc::clone(&gate))]);
    let slow = tokio::spawn({
        let shop = Arc::clone(&shop);
        async move { shop.id(Some(keyring(&["a"]))).await }
    });
    gate.reached().await;
    let id = shop.with_clear_secret().await;
    gate.open();
    assert_eq!(slow.await.unwrap().unwrap(), id);
    shop.engine(Some(keyring(&["a"]))).reseal_secrets().await.unwrap();
    assert_eq!(shop.id(Some(keyring(&["a"]))).await.unwrap(), id);
    assert!(!shop.tells(&id).await);
}

#[tokio::test]
async fn a_secret_that_was_exchanged_does_not_open() {
    let shop = Shop::new();
    shop.id(Some(keyring(&["a"]))).await.unwrap();
    let kept = shop.kept(SEALED).await.unwrap();
    shop.store.replace(SEALED.into(), kept, vec![7; 32].into()).await.unwrap();
    assert!(matches!(shop.id(Some(keyring(&["a"]))).await, Err(StoreError::Damaged(_))));
}
