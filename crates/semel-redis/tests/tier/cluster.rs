//! A Cluster, and the death of a master.

use crate::instance::{Service, in_use};
use semel_testing::servers::RedisCluster;

#[tokio::test]
async fn keys_on_all_masters_are_answered_and_a_masters_death_costs_no_outcome() {
    let mut cluster = RedisCluster::start().unwrap();
    let service = Service::at(cluster.url());
    let instance = service.instance().await;
    let mut answers = Vec::new();
    for number in 0..30 {
        answers.push(instance.carry_out(&format!("key {number}")).await);
    }
    let asked = service.creates();
    // One batch over all slots.
    let all = async || {
        let keys: Vec<_> = (0..answers.len()).map(|number| format!("key {number}")).collect();
        let asking = keys.iter().map(|key| instance.replayed(key));
        assert_eq!(futures_util::future::join_all(asking).await, answers);
    };
    all().await;
    assert_eq!((service.creates(), instance.counts().replays()), (asked, 30));
    cluster.kill_a_master().unwrap();
    all().await;
    // The replica takes over, and what it has is used.
    cluster.is_whole().unwrap();
    let before = instance.counts().replays();
    while instance.counts().replays() < before + 30 {
        in_use(instance.counts()).await;
        all().await;
    }
}
