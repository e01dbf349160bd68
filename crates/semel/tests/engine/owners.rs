//! Fencing is by owner, never by a clock: what a late owner may still say, case by case.

use crate::support::{LEASE, Shop, answer, completed, key, replayed, retryable};
use semel::transition::{
    About, Change, Evidence, Refusal, Reservation, Settlement, Windows, reserve, settle,
};
use semel::{
    Actor, AdvanceError, Decision, Finish, Outcome, Owner, Policy, Stale, State, Store as _, Swap, Swapped,
    Ticket,
};

/// An owner whose lease has run out, and whose record has become unknown.
async fn doubted(shop: &Shop) -> Ticket {
    let ticket = shop.execute().await;
    shop.clock.advance(LEASE);
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    ticket
}

/// Evidence comes.
async fn settled(shop: &Shop, evidence: Evidence) {
    let record = shop.record().await.unwrap();
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence,
        note: Some("asked the bank".into()),
        windows: Windows::from(&*shop.policy),
    };
    let Ok(Change::Put { next, history }) =
        settle(&record, &About::of(&record), &settlement, shop.clock.now())
    else {
        panic!("refused")
    };
    let swap = Swap { expected: record.expected(), next, history };
    assert_eq!(shop.memory.swap(vec![swap]).await.unwrap().items, [Swapped::Done]);
}

#[tokio::test(start_paused = true)]
async fn while_the_lease_is_over_and_nobody_came_the_owner_may_do_everything() {
    let outcomes = [
        completed("x"),
        Outcome::Failed { response: Some(answer("x")), resource: None },
        retryable(),
        Outcome::Released,
    ];
    let states = [Some(State::Completed), Some(State::FailedReplayable), Some(State::FailedRetryable), None];
    for (outcome, state) in outcomes.into_iter().zip(states) {
        let shop = Shop::new();
        let ticket = shop.execute().await;
        shop.clock.advance(LEASE * 100);
        assert!(matches!(ticket.finish(outcome).await, Ok(Finish::Stored)));
        assert_eq!(shop.state().await, state);
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_doubt_may_complete_or_fail() {
    let outcomes = [completed("late"), Outcome::Failed { response: Some(answer("late")), resource: None }];
    for (outcome, state) in outcomes.into_iter().zip([State::Completed, State::FailedReplayable]) {
        let shop = Shop::new();
        let ticket = doubted(&shop).await;
        assert!(matches!(ticket.finish(outcome).await, Ok(Finish::Stored)));
        assert_eq!(shop.state().await, Some(state));
        assert_eq!(replayed(shop.decide().await), "late");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_doubt_may_not_release_retry_or_advance() {
    for outcome in [retryable(), Outcome::Released] {
        let shop = Shop::new();
        let mut ticket = doubted(&shop).await;
        let refused = ticket.advance("charged", None).await;
        assert!(matches!(refused, Err(AdvanceError::Refused(Refusal::InDoubt))));
        assert!(matches!(ticket.finish(outcome).await, Ok(Finish::Unknown)));
        assert_eq!(shop.state().await, Some(State::Unknown));
        assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_operation_was_settled_is_refused_and_told_what_is_there() {
    let evidence = [
        (Evidence::Completed { response: Some(answer("settled")), resource: None }, State::Completed),
        (Evidence::Failed { response: Some(answer("settled")), resource: None }, State::FailedReplayable),
        (Evidence::NotExecuted, State::FailedRetryable),
    ];
    for (evidence, state) in evidence {
        for outcome in
            [completed("late"), retryable(), Outcome::Released, Outcome::Unknown { error: "late".into() }]
        {
            let shop = Shop::new();
            let ticket = doubted(&shop).await;
            settled(&shop, evidence.clone()).await;
            let Ok(Finish::Fenced(Some(found))) = ticket.finish(outcome).await else { panic!("not fenced") };
            assert_eq!(found.state, state);
            assert_eq!(shop.record().await.unwrap(), *found, "nothing changed");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_completion_after_a_settlement_is_fenced() {
    let shop = Shop::new();
    let ticket = doubted(&shop).await;
    settled(&shop, Evidence::Completed { response: Some(answer("settled")), resource: None }).await;
    assert!(matches!(ticket.finish(completed("late")).await, Ok(Finish::Fenced(Some(_)))));
    assert_eq!(replayed(shop.decide().await), "settled");
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_was_taken_over_is_refused_everything() {
    for outcome in
        [completed("old"), retryable(), Outcome::Released, Outcome::Unknown { error: "old".into() }]
    {
        let shop = Shop::with(Policy { stale: Stale::Rerun, ..Policy::default() });
        let mut old = shop.execute().await;
        shop.clock.advance(LEASE);
        let new = shop.execute().await;
        assert_eq!((new.operation_id(), new.attempt()), (old.operation_id(), 2));
        let refused = old.advance("charged", None).await;
        assert!(matches!(refused, Err(AdvanceError::Refused(Refusal::Fenced))));
        assert!(matches!(old.finish(outcome).await, Ok(Finish::Fenced(_))));
        assert!(matches!(new.finish(completed("new")).await, Ok(Finish::Stored)));
        assert_eq!(replayed(shop.decide().await), "new");
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_whose_record_is_gone_is_fenced_and_brings_nothing_back() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let record = shop.record().await.unwrap();
    shop.memory.remove(vec![record.expected()]).await.unwrap();
    assert!(matches!(ticket.finish(completed("late")).await, Ok(Finish::Fenced(None))));
    assert_eq!(shop.memory.read(vec![key()]).await.unwrap().items, [None]);
}

#[tokio::test(start_paused = true)]
async fn a_released_operation_is_as_if_never_seen() {
    let shop = Shop::new();
    let first = shop.execute().await;
    let id = first.operation_id();
    assert!(matches!(first.finish(Outcome::Released).await, Ok(Finish::Stored)));
    assert_eq!(shop.state().await, None);
    let second = shop.execute().await;
    assert_ne!(second.operation_id(), id);
    assert_eq!(second.attempt(), 1);
    second.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_later_attempt_that_is_released_goes_back_to_retryable() {
    let shop = Shop::new();
    let first = shop.execute().await;
    let id = first.operation_id();
    first.finish(retryable()).await.unwrap();
    assert!(matches!(shop.execute().await.finish(Outcome::Released).await, Ok(Finish::Stored)));
    assert_eq!(shop.state().await, Some(State::FailedRetryable));
    let third = shop.execute().await;
    assert_eq!((third.operation_id(), third.attempt()), (id, 3));
    third.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_identity_of_an_effect_is_the_same_on_every_attempt() {
    let shop = Shop::new();
    let first = shop.execute().await;
    let identities = (first.downstream_key("charge"), first.downstream_key("mail"));
    assert_ne!(identities.0, identities.1);
    first.finish(retryable()).await.unwrap();
    let second = shop.execute().await;
    assert_eq!((second.downstream_key("charge"), second.downstream_key("mail")), identities);
    second.finish(completed("once")).await.unwrap();
}

/// A failover that has lost the last writes of an owner: what the store has counts, and not what it said before.
#[tokio::test(start_paused = true)]
async fn an_owner_that_has_seen_more_than_the_store_has_goes_by_what_is_there() {
    let shop = Shop::new();
    let mut ticket = shop.execute().await;
    let first = shop.record().await.unwrap();
    for point in ["one", "two"] {
        ticket.advance(point, None).await.unwrap();
    }
    let last = shop.record().await.unwrap();
    assert!(last.version > first.version);
    shop.memory.remove(vec![last.expected()]).await.unwrap();
    let reservation = Reservation {
        key: first.key.clone(),
        operation_id: first.operation_id,
        fingerprint: first.fingerprint,
        recipe: first.recipe,
        owner: first.owner,
    };
    shop.memory.create(vec![reserve(reservation, &shop.policy)]).await.unwrap();
    assert_eq!(shop.record().await.unwrap().version, first.version);
    assert!(matches!(ticket.finish(completed("once")).await, Ok(Finish::Stored)));
    assert_eq!(replayed(shop.decide().await), "once");
}
