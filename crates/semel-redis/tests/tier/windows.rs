//! Windows end to the second, whatever is in Redis.

use crate::instance::Service;
use semel::{Decision, Expired, Policy};
use semel_redis::Refused;
use std::time::Duration;

const RETENTION: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_replay_is_served_until_its_window_ends_and_no_longer() {
    let service = Service::new();
    let mut instance = service.instance().await;
    instance.policy = Policy { retention: RETENTION, body_retention: RETENTION, ..Policy::default() };
    let answer = instance.carry_out("key").await;
    for (passed, from_redis) in [(58_000, true), (59_500, false), (59_999, false)] {
        set(&service, &instance, passed).await;
        let asked = service.creates();
        assert_eq!(instance.replayed("key").await, answer, "{passed} ms");
        assert_eq!(service.creates() == asked, from_redis, "{passed} ms");
    }
    assert!(instance.counts().refused(Refused::Window) >= 2);
    set(&service, &instance, 60_000).await;
    assert!(matches!(instance.ask("key").await, Decision::Expired { .. }));
}

#[tokio::test]
async fn an_expired_key_is_new_work_where_the_policy_says_so() {
    let service = Service::new();
    let mut instances = [service.instance().await, service.instance().await];
    for instance in &mut instances {
        instance.policy = Policy {
            retention: RETENTION,
            body_retention: RETENTION,
            expired: Expired::New,
            ..Policy::default()
        };
    }
    let [one, other] = instances;
    let first = one.carry_out("key").await;
    set(&service, &one, 60_000).await;
    let second = other.carry_out("key").await;
    assert_ne!(first, second, "it was executed again");
    for instance in [&one, &other, &one] {
        assert_eq!(instance.replayed("key").await, second);
    }
}

#[tokio::test]
async fn an_answer_that_goes_before_its_window_is_not_replayed() {
    let service = Service::new();
    let mut instance = service.instance().await;
    instance.policy = Policy { retention: RETENTION, body_retention: RETENTION / 2, ..Policy::default() };
    let answer = instance.carry_out("key").await;
    set(&service, &instance, 28_000).await;
    assert_eq!(instance.replayed("key").await, answer);
    set(&service, &instance, 30_000).await;
    assert!(matches!(instance.ask("key").await, Decision::NotStored(_)));
}

#[tokio::test]
async fn an_entry_is_used_no_longer_than_its_greatest_age() {
    let service = Service::new();
    let mut options = service.options();
    options.max_age = Duration::from_secs(10);
    let instance = service.instance_with(options, None).await;
    let answer = instance.carry_out("key").await;
    set(&service, &instance, 10_000).await;
    let asked = service.creates();
    assert_eq!(instance.replayed("key").await, answer);
    assert_eq!(service.creates(), asked + 1);
    assert_eq!(instance.counts().refused(Refused::Age), 1);
}

#[tokio::test]
async fn an_accepted_leap_of_the_clock_ends_windows_at_once() {
    let service = Service::new();
    let mut instance = service.instance().await;
    instance.policy = Policy { retention: RETENTION, body_retention: RETENTION, ..Policy::default() };
    let answer = instance.carry_out("key").await;
    service.clock.jump(RETENTION * 2);
    assert_eq!(instance.replayed("key").await, answer, "it is over by a jump alone");
    instance.engine.store().clock(semel::clock::ClockRequest::Accept).await.unwrap();
    assert!(matches!(instance.ask("key").await, Decision::Expired { .. }));
}

/// Sets the clock to so long after the beginning, and has the instance know of it.
async fn set(service: &Service, instance: &crate::instance::Instance, millis: i64) {
    service.clock.set(semel::Timestamp::from_millis(1_800_000_000_000 + millis));
    instance.engine.store().now().await.unwrap();
}
