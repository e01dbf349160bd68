//! Callers without a tenant of their own are told apart by a keyed hash of their credentials: what a thief of the file can learn from that.

use crate::secrets::{KEY, ROUTE, encryption, opened};
use crate::support::{Ask, Shop};
use semel::fingerprint::{FingerprintSecret, tenant_of_credential};
use semel::seal::{Keyring, SealingKey};
use semel::{Engine, EngineOptions, Filter};
use semel_worker::{RekeyOptions, Rekeyer};

const NAMES: [&str; 2] = ["secret/keyed-hashes", "secret/keyed-hashes/sealed"];

fn ask() -> Ask {
    Ask::json().field("Authorization", "Basic Ym9iOmhlbGxv")
}

/// Whether the file confirms a guessed password: that the tenant of the only record is its hash by a secret that is stored there.
async fn is_confirmed(shop: &Shop) -> bool {
    let store = opened(shop).await;
    let page = store.list(Filter::default(), None, 10).await.unwrap();
    let [record] = &page.records[..] else { panic!("{page:?}") };
    let mut confirmed = false;
    for name in NAMES {
        let Some(kept) = store.recall(name.into()).await.unwrap() else { continue };
        let guess = |secret: FingerprintSecret| {
            tenant_of_credential(&secret, b"authorization:Basic Ym9iOmhlbGxv\n") == *record.key.tenant
        };
        confirmed |= FingerprintSecret::new(kept).is_ok_and(guess);
    }
    confirmed
}

/// Whether these bytes are anywhere in the files of the store.
fn holds(shop: &Shop, bytes: &[u8]) -> bool {
    let files = std::fs::read_dir(shop.file().parent().unwrap()).unwrap();
    let mut files = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    files.any(|file| file.windows(bytes.len()).any(|window| window == bytes))
}

#[tokio::test]
async fn with_keys_a_guessed_credential_is_not_confirmed_by_the_file() {
    for (sections, confirmed) in [(ROUTE.to_owned(), true), (encryption(&[("one", 1)]), false)] {
        let shop = Shop::open().await;
        let door = shop.door(&sections).await;
        door.send(KEY, &ask()).await.execution();
        door.close().await;
        assert_eq!(is_confirmed(&shop).await, confirmed, "{sections}");
    }
}

#[tokio::test]
async fn rekeying_takes_the_secret_out_of_the_file_and_callers_stay_who_they_are() {
    let shop = Shop::open().await;
    let door = shop.door(ROUTE).await;
    let first = door.send(KEY, &ask()).await;
    door.close().await;
    let store = opened(&shop).await;
    let secret = store.recall(NAMES[0].into()).await.unwrap().unwrap();
    assert!(holds(&shop, &secret), "it is found where it is");
    let keyring = Keyring::new([SealingKey::new("one", &[1; 32]).unwrap()]).ok();
    let engine = Engine::with_options(store, EngineOptions { keyring, ..EngineOptions::default() });
    assert!(Rekeyer::new(engine, RekeyOptions::default()).run(|_| ()).await.unwrap().is_complete());

    let door = shop.door(&encryption(&[("one", 1)])).await;
    door.send(KEY, &ask()).await.is_replay_of(&first);
    door.close().await;
    assert!(!is_confirmed(&shop).await);
    assert!(!holds(&shop, &secret), "neither in use nor left over");
    // Without the key callers would be strangers: their retries would execute again.
    for sections in [ROUTE.to_owned(), encryption(&[("two", 2)])] {
        let refused = shop.try_door(&sections).await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused.contains("\"one\", which is not configured"), "{refused}");
    }
    assert_eq!(shop.executions(), 1);
}
