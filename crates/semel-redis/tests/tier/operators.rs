//! An operator's word is heard at once, and nothing that is on its way to Redis takes it back.

use crate::instance::{Service, complete, written};
use semel::transition::{About, Evidence, Settlement, Windows};
use semel::{Actor, Decision, Finish, OperationId, Outcome, Owner, Policy, Settled};
use semel_redis::Refused;

async fn settled(instance: &crate::instance::Instance, id: OperationId, evidence: Evidence) -> bool {
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("token:oncall".into()),
        evidence,
        note: Some("the bank says so".into()),
        windows: Windows::from(&Policy::default()),
    };
    let about = About { operation_id: id, attempt: Some(1) };
    matches!(instance.engine.settle(&about, &settlement).await, Ok(Settled::Done(_)))
}

async fn doubted(instance: &crate::instance::Instance, key: &str) -> OperationId {
    let ticket = instance.execute(key).await;
    let id = ticket.operation_id();
    written(instance, 1).await;
    assert!(matches!(ticket.finish(Outcome::Unknown { error: "timeout".into() }).await, Ok(Finish::Unknown)));
    id
}

#[tokio::test]
async fn not_executed_lets_one_retry_execute_on_every_instance() {
    let service = Service::new();
    let (one, other) = (service.instance().await, service.instance().await);
    let id = doubted(&one, "key").await;
    assert!(matches!(other.ask("key").await, Decision::Unknown { .. }));
    assert!(settled(&one, id, Evidence::NotExecuted).await);
    let ticket = other.execute("key").await;
    assert_eq!(ticket.operation_id(), id, "the same operation, another attempt");
    let answer = complete(ticket).await;
    for instance in [&one, &other, &one, &other] {
        assert_eq!(instance.replayed("key").await, answer);
    }
    // The marker outlives whatever was on its way: for as long, the store is asked.
    assert!(one.counts().refused(Refused::Marker) > 0 && other.counts().refused(Refused::Marker) > 0);
    assert_eq!(one.counts().replays() + other.counts().replays(), 0);
}

#[tokio::test]
async fn completed_without_an_answer_is_told_everywhere() {
    let service = Service::new();
    let (one, other) = (service.instance().await, service.instance().await);
    let id = doubted(&one, "key").await;
    assert!(settled(&other, id, Evidence::Completed { response: None, resource: None }).await);
    for instance in [&one, &other, &one, &other] {
        assert!(matches!(instance.ask("key").await, Decision::NotStored(_)));
    }
}

#[tokio::test]
async fn an_operator_on_an_instance_without_the_tier_is_heard_as_well() {
    let service = Service::new();
    let (with, without) = (service.instance().await, service.without_the_tier());
    let id = doubted(&with, "key").await;
    assert!(settled(&without, id, Evidence::NotExecuted).await);
    let answer = complete(with.execute("key").await).await;
    assert_eq!(without.replayed("key").await, answer);
    assert_eq!(with.replayed("key").await, answer);
}
