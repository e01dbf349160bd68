//! With keys, clients notice nothing; without the right ones they are told that the record is damaged, and nothing executes.

use crate::support::{Ask, KEY, Shop};
use semel::seal::{Keyring, SealingKey};
use semel::{Body, Engine, MemoryStore};
use semel_tower::IdempotencyLayer;

pub(crate) fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

fn ask() -> Ask {
    Ask::new("POST", "/payments").key(KEY).json(r#"{"amount":"10.00"}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_answer_is_replayed_as_it_was_through_a_change_of_keys() {
    let shop = Shop::open().await;
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let first = shop.send(&ask()).await;
    assert!(matches!(shop.record().await.response.unwrap().body, Body::Sealed(_)));
    for ids in [&["a"][..], &["b", "a"]] {
        shop.engine.set_keyring(Some(keyring(ids)));
        let replay = shop.send(&ask()).await;
        assert!(replay.is_replay());
        assert_eq!((replay.status, &replay.body), (first.status, &first.body));
        for name in ["content-type", "content-length", "location", "semel-operation-id"] {
            assert_eq!(first.header(name), replay.header(name), "{name}");
        }
    }
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_open_is_damage_and_is_not_carried_out_again() {
    let shop = Shop::open().await;
    shop.engine.set_keyring(Some(keyring(&["a"])));
    let first = shop.send(&ask()).await;
    for without in [Some(keyring(&["b"])), None] {
        shop.engine.set_keyring(without);
        let refused = shop.send(&ask()).await;
        assert_eq!((refused.status, refused.code().as_str()), (500, "idempotency_record_damaged"));
    }
    shop.engine.set_keyring(Some(keyring(&["a"])));
    assert_eq!(shop.send(&ask()).await.body, first.body);
    let cut = "UPDATE semel_answers SET body = substr(body, 1, length(body) - 1)";
    assert_eq!(shop.connection().execute(cut, []).unwrap(), 1);
    let refused = shop.send(&ask()).await;
    assert_eq!((refused.status, refused.code().as_str()), (500, "idempotency_record_damaged"));
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test]
async fn a_layer_that_seals_changes_no_engine_of_others() {
    let engine = Engine::new(MemoryStore::new());
    let plain = IdempotencyLayer::with_engine(engine.clone());
    let sealing = IdempotencyLayer::sealed(MemoryStore::new(), keyring(&["a"]));
    assert!(sealing.engine().seals_client_keys().await.unwrap());
    assert!(!plain.engine().seals_client_keys().await.unwrap());
    assert!(!engine.seals_client_keys().await.unwrap());
}
