//! What has ended is answered without the store.

use crate::instance::{Service, written};
use semel::Decision;

#[tokio::test]
async fn a_replay_does_not_reach_the_store() {
    let service = Service::new();
    let (one, other) = (service.instance().await, service.instance().await);
    let answer = one.carry_out("key").await;
    // The other instance has not spoken with the store yet: its first question goes there.
    assert_eq!(other.replayed("key").await, answer);
    let asked = service.store.asked_for().len();
    for instance in [&one, &other] {
        for _ in 0..10 {
            assert_eq!(instance.replayed("key").await, answer);
        }
        assert_eq!(instance.counts().replays(), 10);
    }
    assert_eq!(service.store.asked_for().len(), asked, "the store was not asked for anything");
}

#[tokio::test]
async fn a_different_request_is_decided_by_the_store() {
    let service = Service::new();
    let instance = service.instance().await;
    instance.carry_out("key").await;
    let asked = service.creates();
    assert!(matches!(instance.ask_for("key", "99.00").await, Decision::KeyReused { .. }));
    assert_eq!(service.creates(), asked + 1);
    assert_eq!(instance.counts().refused(semel_redis::Refused::Fingerprint), 1);
}

#[tokio::test]
async fn without_a_recent_time_the_store_is_asked() {
    let service = Service::new();
    let instance = service.instance().await;
    let answer = instance.carry_out("key").await;
    service.clock.advance(std::time::Duration::from_secs(1));
    let asked = service.creates();
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(service.creates(), asked + 1);
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(service.creates(), asked + 1, "now it is known what time it is");
}

#[tokio::test]
async fn what_redis_forgot_is_written_when_it_is_asked_for_again() {
    let service = Service::new();
    let instance = service.instance().await;
    let answer = instance.carry_out("key").await;
    let names = names_of(&service, &instance).await;
    delete(&service.url, &names).await;
    let (asked, before) = (service.creates(), instance.counts().written());
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(service.creates(), asked + 1);
    written(&instance, before + 1).await;
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(service.creates(), asked + 1);
}

#[tokio::test]
async fn instances_with_and_without_the_tier_agree() {
    let service = Service::new();
    let (with, without) = (service.instance().await, service.without_the_tier());
    for (first, second, key) in [(&with, &without, "one"), (&without, &with, "two")] {
        let ticket = first.execute(key).await;
        assert!(matches!(second.ask(key).await, Decision::InProgress { .. }));
        let answer = crate::instance::complete(ticket).await;
        // The guard of an instance with the tier is not taken back by one without.
        if second.counts.is_some() {
            service.clock.advance(std::time::Duration::from_secs(2));
        }
        for instance in [first, second, first] {
            assert_eq!(instance.replayed(key).await, answer);
        }
        assert!(matches!(second.ask_for(key, "99.00").await, Decision::KeyReused { .. }));
    }
}

/// The values in Redis by name, found by their content.
pub(crate) async fn names_of(service: &Service, _instance: &crate::instance::Instance) -> Vec<Vec<u8>> {
    let secret = semel::Store::recall(&service.store, "secret/cache".into()).await.unwrap();
    assert!(secret.is_some(), "the durable store remembers the secret");
    // All tests share the server, and names tell nothing: so find those whose value is of this store's one key.
    let client = redis::Client::open(service.url.clone()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let ids: Vec<[u8; 16]> = ids(service).await;
    let names: Vec<Vec<u8>> = redis::cmd("KEYS").arg("semel:*").query_async(&mut connection).await.unwrap();
    let mut found = Vec::new();
    for name in names {
        let head: Vec<u8> =
            redis::cmd("GETRANGE").arg(&name[..]).arg(4).arg(19).query_async(&mut connection).await.unwrap();
        if ids.iter().any(|id| id[..] == head[..]) {
            found.push(name);
        }
    }
    assert!(!found.is_empty(), "nothing of this store is in Redis");
    found
}

async fn ids(service: &Service) -> Vec<[u8; 16]> {
    let page = semel::Store::list(&service.store, semel::Filter::default(), None, 100).await.unwrap();
    page.records.iter().map(|record| *record.operation_id.as_bytes()).collect()
}

pub(crate) async fn delete(url: &str, names: &[Vec<u8>]) {
    let client = redis::Client::open(url.to_owned()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for name in names {
        redis::cmd("DEL").arg(&name[..]).query_async::<()>(&mut connection).await.unwrap();
    }
}
