//! Recovery points: one new owner goes on after the last committed one, and doubt is never called nothing.

use crate::support::{LEASE, Shop, completed, replayed, retryable};
use bytes::Bytes;
use semel::{Decision, Finish, Happening, Outcome, Policy, Stale, State};
use std::sync::Arc;
use tokio::task::JoinSet;

fn resuming(stale: Stale) -> Shop {
    Shop::with(Policy { stale, ..Policy::default() })
}

#[tokio::test(start_paused = true)]
async fn a_recovery_point_is_kept_with_what_was_left_there() {
    let shop = Shop::new();
    let mut ticket = shop.execute().await;
    assert_eq!(ticket.recovery_point().unwrap(), None);
    ticket.advance("created", Some(Bytes::from_static(b"pay_1"))).await.unwrap();
    ticket.advance("charged", Some(Bytes::from_static(b"ch_1"))).await.unwrap();
    let kept = Some(("charged".to_owned(), Some(Bytes::from_static(b"ch_1"))));
    assert_eq!(ticket.recovery_point().unwrap(), kept);
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_many_that_come_after_the_lease_exactly_one_resumes() {
    for stale in [Stale::Resume, Stale::Rerun] {
        let shop = resuming(stale);
        let mut dead = shop.execute().await;
        dead.advance("charged", Some(Bytes::from_static(b"ch_1"))).await.unwrap();
        shop.clock.advance(LEASE);
        let mut requests = JoinSet::new();
        for _ in 0..50 {
            let shop = shop.clone();
            requests.spawn(async move { shop.decide().await });
        }
        let (mut owners, mut others) = (Vec::new(), 0);
        while let Some(decision) = requests.join_next().await {
            match decision.unwrap() {
                Decision::Execute(ticket) => owners.push(ticket),
                Decision::InProgress { .. } => others += 1,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((owners.len(), others), (1, 49));
        let owner = owners.remove(0);
        assert_eq!((owner.attempt(), owner.operation_id()), (2, dead.operation_id()));
        let kept = Some(("charged".to_owned(), Some(Bytes::from_static(b"ch_1"))));
        assert_eq!(owner.recovery_point().unwrap(), kept);
        assert!(matches!(dead.finish(completed("old")).await, Ok(Finish::Fenced(_))));
        owner.finish(completed("resumed")).await.unwrap();
        assert_eq!(replayed(shop.decide().await), "resumed");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_took_over_doubt_ends_unknown_if_it_says_that_nothing_happened() {
    for outcome in [Outcome::Released, retryable()] {
        let shop = resuming(Stale::Resume);
        let dead = shop.execute().await;
        shop.clock.advance(LEASE);
        let second = shop.execute().await;
        let id = second.operation_id();
        assert!(matches!(second.finish(outcome).await, Ok(Finish::Unknown)));
        assert_eq!(shop.state().await, Some(State::Unknown));
        let told: Vec<_> = shop.history(id).await.into_iter().map(|line| line.entry.happening).collect();
        assert_eq!(told, [Happening::TakenOver, Happening::Doubted]);
        assert!(matches!(dead.finish(completed("old")).await, Ok(Finish::Fenced(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_after_a_recovery_point_is_retryable_and_the_next_goes_on_after_it() {
    let shop = Shop::new();
    let mut first = shop.execute().await;
    let id = first.operation_id();
    first.advance("created", None).await.unwrap();
    assert!(matches!(first.finish(Outcome::Released).await, Ok(Finish::Stored)));
    assert_eq!(shop.state().await, Some(State::FailedRetryable));
    let second = shop.execute().await;
    assert_eq!((second.operation_id(), second.attempt()), (id, 2));
    assert_eq!(second.recovery_point().unwrap().unwrap().0, "created");
    second.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rules_that_leave_a_stale_lease_unknown_are_not_moved_by_another_instances_rules() {
    // During a deploy two instances have different rules; each request is judged by those of the instance that it came to.
    let careful = Shop::new();
    let dead = careful.execute().await;
    careful.clock.advance(LEASE);
    assert!(matches!(careful.decide().await, Decision::Unknown { .. }));
    let resuming = Shop {
        policy: Arc::new(Policy { stale: Stale::Resume, ..Policy::default() }),
        ..careful.elsewhere()
    };
    assert!(
        matches!(resuming.decide().await, Decision::Unknown { .. }),
        "what is unknown is moved by evidence alone"
    );
    dead.finish(completed("late")).await.unwrap();
}
