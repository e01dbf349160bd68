//! Client keys with a keyring: sealed where the store was never used, looked up all the same, and in one format alone.

use crate::support::{Shop, answer, completed, key, replayed};
use semel::seal::{Keyring, SEALED_KEY, SealingKey};
use semel::{BeginError, Decision, Filter, KeyFormat, KeysConverted, Store as _, StoreError};
use semel_testing::store::{Call, Fault};

fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_store_gets_sealed_keys_and_every_instance_finds_them() {
    let shop = Shop::new();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    shop.execute().await.finish(completed("once")).await.unwrap();
    let record = shop.record().await.unwrap();
    assert!(record.key.key.starts_with(SEALED_KEY) && !record.key.key.contains(&*key().key));
    assert_eq!((&record.key.tenant, &record.key.operation), (&key().tenant, &key().operation));
    assert_eq!(shop.engine.client_key(&record).await.unwrap(), key());
    assert_eq!(shop.engine.stored_key(&key()).await.unwrap(), record.key);
    let filter = Filter { key: Some(key().key.to_string()), ..Filter::default() };
    let filter = shop.engine.stored_filter(filter).await.unwrap();
    assert_eq!(shop.memory.list(filter, None, 10).await.unwrap().records.len(), 1);

    // One that opens, and does not seal, looks up by the same secret.
    let other = shop.elsewhere();
    other.engine.set_keyring(Some(keyring(&["a"]).open_only()));
    assert_eq!(replayed(other.decide().await), "once");
    assert!(other.engine.seals_client_keys().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_store_that_was_used_keeps_plain_keys_whatever_the_keyring() {
    let shop = Shop::new();
    shop.execute().await.finish(completed("once")).await.unwrap();
    for keyring in [Some(keyring(&["a"])), Some(keyring(&["a"]).open_only()), None] {
        shop.engine.set_keyring(keyring);
        assert_eq!(replayed(shop.decide().await), "once");
        assert!(!shop.engine.seals_client_keys().await.unwrap());
    }
    assert_eq!(shop.record().await.unwrap().key, key());
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_learnt_the_other_format_executes_nothing() {
    let shop = Shop::new();
    // It asked when nothing was decided, and knows no keys.
    let stale = shop.elsewhere();
    assert!(!stale.engine.seals_client_keys().await.unwrap());
    let opens = shop.elsewhere();
    opens.engine.set_keyring(Some(keyring(&["a"]).open_only()));
    assert!(!opens.engine.seals_client_keys().await.unwrap());
    shop.engine.set_keyring(Some(keyring(&["a"])));
    shop.execute().await.finish(completed("once")).await.unwrap();

    let refused = stale.begin().await;
    assert!(matches!(refused, Err(BeginError::Store(StoreError::Unavailable(_)))), "{refused:?}");
    let refused = stale.begin().await;
    assert!(matches!(refused, Err(BeginError::Store(StoreError::Damaged(_)))), "{refused:?}");
    // The one that can open asks again, and goes on in the right format.
    assert!(matches!(opens.begin().await, Err(BeginError::Store(StoreError::Unavailable(_)))));
    assert_eq!(replayed(opens.decide().await), "once");
}

#[tokio::test(start_paused = true)]
async fn without_the_secret_nothing_is_looked_up_and_nothing_executes() {
    let shop = Shop::new();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    drop(shop.execute().await.finish(completed("once")).await);
    for without in [Some(keyring(&["b"])), None] {
        assert!(shop.engine.check_keyring(without.as_ref()).await.is_err());
        shop.engine.set_keyring(without);
        assert!(matches!(shop.begin().await, Err(BeginError::Store(StoreError::Damaged(_)))));
        assert!(shop.engine.seals_client_keys().await.is_err());
    }
    // A store that does not say is asked again, and nothing is guessed meanwhile.
    shop.engine.set_keyring(Some(keyring(&["a"])));
    shop.store.next(Call::Recall, [Fault::Unavailable]);
    assert!(matches!(shop.begin().await, Err(BeginError::Store(StoreError::Unavailable(_)))));
    assert_eq!(replayed(shop.decide().await), "once");
    assert_eq!(shop.memory.list(Filter::default(), None, 10).await.unwrap().records.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_while_the_format_is_decided_makes_no_second_secret() {
    let shop = Shop::new();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    shop.store.next(Call::SetKeyFormat, [Fault::LostAnswer]);
    assert!(shop.begin().await.is_err());
    shop.execute().await.finish(completed("once")).await.unwrap();
    let other = shop.elsewhere();
    other.engine.set_keyring(Some(keyring(&["a"])));
    assert_eq!(replayed(other.decide().await), "once");
}

#[tokio::test(start_paused = true)]
async fn another_sealing_key_reseals_the_secret_and_keys_stay_as_they_are() {
    let shop = Shop::new();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    shop.execute().await.finish(completed("once")).await.unwrap();
    let before = shop.record().await.unwrap();
    shop.engine.set_keyring(Some(keyring(&["b", "a"])));
    assert_eq!(shop.engine.reseal_secrets().await.unwrap(), 1);
    assert_eq!(shop.engine.reseal_secrets().await.unwrap(), 0);
    assert!(
        shop.engine.check_keyring(Some(&keyring(&["a"]))).await.is_err(),
        "the older key opens it no more"
    );
    shop.engine.check_keyring(Some(&keyring(&["b"]))).await.unwrap();
    assert_eq!(shop.engine.stored_key(&key()).await.unwrap(), before.key);
}

#[tokio::test(start_paused = true)]
async fn a_used_store_is_converted_with_its_answers_and_back() {
    let shop = Shop::new();
    shop.execute().await.finish(completed("once")).await.unwrap();
    shop.engine.set_keyring(Some(keyring(&["a"])));
    assert_eq!(replayed(shop.decide().await), "once");
    assert_eq!(shop.engine.convert_client_keys().await.unwrap(), KeysConverted::Done(true));
    assert_eq!(shop.engine.convert_client_keys().await.unwrap(), KeysConverted::AlreadySo(true));
    assert!(shop.record().await.unwrap().key.key.starts_with(SEALED_KEY));
    let Decision::Replay(record) = shop.decide().await else { panic!("a retry is replayed") };
    assert_eq!(record.response, Some(answer("once")));

    shop.engine.set_keyring(Some(keyring(&["a"]).open_only()));
    assert_eq!(shop.engine.convert_client_keys().await.unwrap(), KeysConverted::Done(false));
    assert_eq!(shop.memory.recall(KeyFormat::SECRET.into()).await.unwrap(), None);
    shop.engine.set_keyring(None);
    assert_eq!(replayed(shop.decide().await), "once");
    assert_eq!(shop.record().await.unwrap().key, key());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_converted_while_an_operation_is_under_way() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    shop.engine.set_keyring(Some(keyring(&["a"])));
    assert_eq!(shop.engine.convert_client_keys().await.unwrap(), KeysConverted::UnderWay(1));
    ticket.finish(completed("once")).await.unwrap();
    assert_eq!(shop.engine.convert_client_keys().await.unwrap(), KeysConverted::Done(true));
    assert_eq!(replayed(shop.decide().await), "once");
}
