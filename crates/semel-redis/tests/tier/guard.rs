//! Duplicates of what is in progress are held off without the store, for two seconds at a time.

use crate::instance::{Instance, Service, complete, written};
use crate::liar::{Habit, Liar, Lie};
use semel::{Decision, Finish, Outcome};
use semel_redis::Refused;
use std::time::Duration;

async fn is_in_progress(instance: &Instance, key: &str) -> bool {
    matches!(instance.ask(key).await, Decision::InProgress { .. })
}

#[tokio::test]
async fn a_storm_of_duplicates_does_not_reach_the_store() {
    let service = Service::new();
    let (one, other) = (service.instance().await, service.instance().await);
    let ticket = one.execute("key").await;
    written(&one, 1).await;
    assert!(is_in_progress(&other, "key").await, "it asks the store, and knows the time now");
    let asked = service.creates();
    for instance in [&one, &other] {
        for _ in 0..10 {
            assert!(is_in_progress(instance, "key").await);
        }
    }
    assert_eq!(service.creates(), asked);
    assert!(matches!(one.ask_for("key", "99.00").await, Decision::KeyReused { .. }), "another request");
    // Two seconds later the store is asked whether it still is.
    service.clock.advance(Duration::from_secs(2));
    one.engine.store().now().await.unwrap();
    let asked = service.creates();
    assert!(is_in_progress(&one, "key").await);
    assert_eq!(service.creates(), asked + 1);
    complete(ticket).await;
}

#[tokio::test]
async fn the_guard_goes_with_the_outcome_before_anybody_is_told() {
    let service = Service::new();
    let (one, other) = (service.instance().await, service.instance().await);
    for number in 0..20 {
        let key = format!("key {number}");
        let ticket = one.execute(&key).await;
        assert!(is_in_progress(&other, &key).await);
        let answer = complete(ticket).await;
        assert_eq!(other.replayed(&key).await, answer);
    }
}

#[tokio::test]
async fn a_released_key_is_new_at_once_on_every_instance() {
    let service = Service::new();
    let (one, other) = (service.instance().await, service.instance().await);
    for number in 0..20 {
        let key = format!("key {number}");
        let ticket = one.execute(&key).await;
        assert!(is_in_progress(&other, &key).await);
        assert!(matches!(ticket.finish(Outcome::Released).await, Ok(Finish::Stored)));
        complete(other.execute(&key).await).await;
    }
}

#[tokio::test]
async fn a_lease_in_its_last_second_is_judged_by_the_store() {
    let service = Service::new();
    let mut instance = service.instance().await;
    instance.policy.lease = Duration::from_millis(2_500);
    let ticket = instance.execute("key").await;
    written(&instance, 1).await;
    service.clock.advance(Duration::from_millis(1_600));
    instance.engine.store().now().await.unwrap();
    let asked = service.creates();
    assert!(is_in_progress(&instance, "key").await);
    assert_eq!((service.creates(), instance.counts().refused(Refused::Window)), (asked + 1, 1));
    complete(ticket).await;
}

#[tokio::test]
async fn a_redis_that_gives_a_guard_back_delays_for_two_seconds_at_most() {
    let liar = Liar::with_habit(Habit::Always(Lie::None));
    let service = Service::at(liar.url());
    let (one, other) = (service.instance().await, service.instance().await);
    let ticket = one.execute("key").await;
    written(&one, 1).await;
    assert!(is_in_progress(&other, "key").await);
    liar.freeze();
    let answer = complete(ticket).await;
    assert_eq!(one.replayed("key").await, answer, "whoever ended it knows better");
    assert!(is_in_progress(&other, "key").await, "held off, by what was true a moment ago");
    service.clock.advance(Duration::from_secs(2));
    other.engine.store().now().await.unwrap();
    assert_eq!(other.replayed("key").await, answer);
}
