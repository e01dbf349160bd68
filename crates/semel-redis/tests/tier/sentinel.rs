//! A server that Sentinels watch, and its failover.

use crate::instance::{Service, in_use};
use semel_testing::servers::RedisSentinel;

#[tokio::test]
async fn after_a_failover_the_new_primary_is_used() {
    let mut sentinels = RedisSentinel::start().unwrap();
    let service = Service::at(sentinels.url());
    let instance = service.instance().await;
    let answer = instance.carry_out("key").await;
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(instance.counts().replays(), 1);
    sentinels.fail_over().unwrap();
    assert_eq!(instance.replayed("key").await, answer);
    while instance.counts().replays() < 2 {
        in_use(instance.counts()).await;
        assert_eq!(instance.replayed("key").await, answer);
    }
}
