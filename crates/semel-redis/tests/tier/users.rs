//! TLS, and users that may do what the tier needs and nothing else.

use crate::instance::{Service, in_use};
use semel_redis::Trouble;
use semel_testing::servers::Redis;
use semel_testing::tls::Authority;

/// What the guide says.
const USER: [&str; 10] =
    ["ACL", "SETUSER", "semel", "on", ">secret", "~semel:*", "+mget", "+set", "+eval", "+getrange"];

#[tokio::test]
async fn a_user_with_the_rights_of_the_guide_is_enough() {
    let redis = Redis::start().unwrap();
    redis.ask(&USER).unwrap();
    let service = Service::at(format!("redis://semel:secret@127.0.0.1:{}", redis.port()));
    let instance = service.instance().await;
    let answer = instance.carry_out("key").await;
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(instance.counts().replays(), 1);
}

#[tokio::test]
async fn a_wrong_password_is_told_and_costs_nothing() {
    let redis = Redis::start().unwrap();
    redis.ask(&USER).unwrap();
    let service = Service::at(format!("redis://semel:wrong@127.0.0.1:{}", redis.port()));
    let tiered = service.tiered(service.options());
    let counts = tiered.counts();
    let instance = service.on(std::sync::Arc::new(tiered), None);
    let answer = instance.carry_out("key").await;
    while counts.troubles(Trouble::NotAllowed) == 0 {
        assert_eq!(instance.replayed("key").await, answer);
        tokio::task::yield_now().await;
    }
    assert!(counts.is_open());
}

#[tokio::test]
async fn over_tls_the_certificate_has_to_be_the_authoritys() {
    let authority = Authority::new();
    let issued = authority.issue("redis", &["127.0.0.1"]);
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let redis =
        Redis::start_tls(&path(&issued.certificate), &path(&issued.key), &path(&authority.ca())).unwrap();
    let service = Service::at(format!("rediss://127.0.0.1:{}", redis.port()));
    let mut options = service.options();
    options.ca = Some(std::fs::read(authority.ca()).unwrap());
    let instance = service.instance_with(options, None).await;
    let answer = instance.carry_out("key").await;
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(instance.counts().replays(), 1);

    let mut options = service.options();
    options.ca = Some(std::fs::read(Authority::new().ca()).unwrap());
    let tiered = service.tiered(options);
    let counts = tiered.counts();
    let other = service.on(std::sync::Arc::new(tiered), None);
    assert_eq!(other.replayed("key").await, answer, "by the store");
    while counts.troubles(Trouble::Connection) + counts.troubles(Trouble::Answer) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(counts.is_open());
    in_use(instance.counts()).await;
}
