//! Trouble with Redis costs one time-out, and then nothing until it is used again.

use crate::instance::{Service, in_use};
use crate::liar::{Habit, Liar, Lie};
use semel_redis::Trouble;
use semel_testing::servers::Redis;
use std::time::Duration;

#[tokio::test]
async fn every_error_opens_the_breaker_once_and_the_store_answers() {
    for (error, trouble) in [
        ("LOADING Redis is loading the dataset in memory", Trouble::Loading),
        ("MOVED 3999 127.0.0.1:6381", Trouble::Moved),
        ("CLUSTERDOWN The cluster is down", Trouble::Moved),
        ("READONLY You can't write against a read only replica.", Trouble::ReadOnly),
        ("OOM command not allowed when used memory > 'maxmemory'.", Trouble::OutOfMemory),
        ("NOPERM this user has no permissions to run the 'mget' command", Trouble::NotAllowed),
        ("ERR unknown command", Trouble::Answer),
    ] {
        let liar = Liar::with_habit(Habit::Always(Lie::None));
        let service = Service::at(liar.url());
        let instance = service.instance().await;
        let answer = instance.carry_out("key").await;
        assert_eq!(instance.replayed("key").await, answer);
        liar.behave(Habit::Error(error));
        for _ in 0..5 {
            let asked = service.creates();
            assert_eq!(instance.replayed("key").await, answer);
            assert_eq!(service.creates(), asked + 1, "{error}");
        }
        assert!(instance.counts().is_open() && instance.counts().troubles(trouble) > 0, "{error}");
        liar.behave(Habit::Always(Lie::None));
        in_use(instance.counts()).await;
        let asked = service.creates();
        assert_eq!(instance.replayed("key").await, answer);
        assert_eq!(service.creates(), asked, "{error}: it is used again");
    }
}

#[tokio::test]
async fn a_redis_that_stands_still_costs_one_time_out() {
    let redis = Redis::start().unwrap();
    let service = Service::at(redis.url());
    let mut options = service.options();
    options.timeout = Duration::from_millis(50);
    let instance = service.instance_with(options, None).await;
    let answer = instance.carry_out("key").await;
    redis.hold(true).unwrap();
    for _ in 0..20 {
        assert_eq!(instance.replayed("key").await, answer);
    }
    let counts = instance.counts();
    assert!(counts.is_open());
    assert!(counts.troubles(Trouble::Timeout) >= 1 && counts.unasked() >= 19);
    redis.hold(false).unwrap();
    in_use(counts).await;
    assert_eq!(instance.replayed("key").await, answer);
}

#[tokio::test]
async fn a_redis_that_is_gone_is_connected_to_again() {
    let mut redis = Redis::start().unwrap();
    let service = Service::at(redis.url());
    let instance = service.instance().await;
    let answer = instance.carry_out("key").await;
    redis.kill().unwrap();
    for _ in 0..5 {
        assert_eq!(instance.replayed("key").await, answer);
    }
    assert!(instance.counts().is_open());
    redis.start_again().unwrap();
    in_use(instance.counts()).await;
    assert_eq!(
        instance.replayed("key").await,
        answer,
        "it is empty: the store is asked, and it is written again"
    );
    while instance.counts().replays() == 0 {
        assert_eq!(instance.replayed("key").await, answer);
    }
}

#[tokio::test]
async fn a_redis_that_cannot_be_reached_is_no_reason_to_wait() {
    let port = semel_testing::servers::free_port().unwrap();
    let service = Service::at(format!("redis://127.0.0.1:{port}"));
    let tiered = service.tiered(service.options());
    let counts = tiered.counts();
    let instance = service.on(std::sync::Arc::new(tiered), None);
    let answer = instance.carry_out("key").await;
    assert_eq!(instance.replayed("key").await, answer);
    assert!(counts.is_open() && counts.unasked() == 2);
}

#[tokio::test]
async fn a_full_redis_that_evicts_nothing_is_left_alone_and_one_that_evicts_is_used() {
    for (policy, is_used) in [("noeviction", false), ("allkeys-lru", true)] {
        let redis = Redis::start_with(&["--maxmemory", "4mb", "--maxmemory-policy", policy]).unwrap();
        let service = Service::at(redis.url());
        let instance = service.instance().await;
        let filling = "for i = 1, 200 do redis.pcall('SET', 'other:' .. i, string.rep('x', 50000)) end";
        redis.ask(&["EVAL", filling, "0"]).unwrap();
        let mut answers = Vec::new();
        for number in 0..20 {
            answers.push(instance.carry_out(&format!("key {number}")).await);
        }
        for (number, answer) in answers.iter().enumerate() {
            assert_eq!(instance.replayed(&format!("key {number}")).await, *answer, "{policy}");
        }
        let full = instance.counts().troubles(Trouble::OutOfMemory) > 0;
        assert_eq!((full, instance.counts().replays() > 0), (!is_used, is_used), "{policy}");
    }
}
