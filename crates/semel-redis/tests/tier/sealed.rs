//! What is sealed stays sealed in Redis, and is asked of the store where it does not open any more.

use crate::instance::{Service, in_use};
use semel::Engine;
use semel::seal::{Keyring, SealingKey};
use semel_testing::store::Call;
use semel_worker::{RekeyOptions, Rekeyer};
use std::sync::Arc;

fn keyring(ids: &[&str]) -> Keyring {
    let key = |id: &&str| SealingKey::new(*id, &[id.as_bytes()[0]; 32]).unwrap();
    Keyring::new(ids.iter().map(key)).unwrap()
}

#[tokio::test]
async fn after_rekeying_the_store_is_asked_for_what_does_not_open() {
    let service = Service::new();
    let first = service.instance_with(service.options(), Some(keyring(&["old"]))).await;
    let answer = first.carry_out("key").await;
    assert_eq!(first.replayed("key").await, answer);
    // As `semel rekey` does, which knows of no Redis.
    let rekeying: Engine = service.on(Arc::new(service.store.clone()), Some(keyring(&["new", "old"]))).engine;
    let rekeyed = Rekeyer::new(rekeying, RekeyOptions::default()).run(|_| {}).await.unwrap();
    assert!(rekeyed.rewritten > 0);

    let second = service.instance_with(service.options(), Some(keyring(&["new"]))).await;
    second.engine.store().now().await.unwrap();
    in_use(second.counts()).await;
    let reads = service.store.batches(Call::Read).len();
    assert_eq!(second.replayed("key").await, answer);
    assert_eq!(second.counts().replays(), 1, "the entry of before was found");
    assert!(service.store.batches(Call::Read).len() > reads, "it does not open: the store was asked");
}
