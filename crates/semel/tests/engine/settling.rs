//! Evidence, carried to a store that loses answers, or comes while somebody else settles.

use crate::support::{Shop, answer, completed, replayed};
use semel::transition::{About, Evidence, Refusal, Settlement, Windows};
use semel::{
    Actor, Decision, Happening, Outcome, Owner, Policy, Settled, Settling, State, StoreError, Ticket,
};
use semel_testing::store::{Call, Fault, Gate};

fn shop() -> Shop {
    Shop::with(Policy { settling: Settling::Webhook, ..Policy::default() })
}

/// The operation of everybody, in doubt.
async fn doubted(shop: &Shop) -> (About, Ticket) {
    let ticket = shop.execute().await;
    ticket.doubt("timeout").await;
    (About::of(&shop.record().await.unwrap()), ticket)
}

fn it_happened(body: &'static str) -> Settlement {
    settlement(Evidence::Completed { response: Some(answer(body)), resource: None })
}

fn settlement(evidence: Evidence) -> Settlement {
    Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence,
        note: Some("asked the bank".into()),
        windows: Windows::from(&Policy::default()),
    }
}

#[tokio::test(start_paused = true)]
async fn evidence_settles_doubt_and_the_retry_gets_its_answer() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    let settled = shop.engine.settle(&about, &it_happened("by the bank")).await.unwrap();
    assert_eq!(settled, Settled::Done(Box::new(shop.record().await.unwrap())));
    assert_eq!(replayed(shop.decide().await), "by the bank");
    let history = shop.history(about.operation_id).await;
    let last = &history.last().unwrap().entry;
    assert_eq!((last.happening, &last.actor), (Happening::SettledCompleted, &Actor::Operator("ada".into())));
    assert_eq!(last.note.as_deref(), Some("asked the bank"));
    assert!(matches!(ticket.finish(completed("late")).await, Ok(semel::Finish::Fenced(_))));
}

#[tokio::test(start_paused = true)]
async fn evidence_that_nothing_happened_lets_the_retry_execute() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    shop.engine.settle(&about, &settlement(Evidence::NotExecuted)).await.unwrap();
    let second = shop.execute().await;
    assert_eq!(second.attempt(), 2);
    second.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    // What was known of the first attempt says nothing about the second.
    let settled = shop.engine.settle(&about, &settlement(Evidence::NotExecuted)).await.unwrap();
    assert!(matches!(settled, Settled::Refused(Refusal::OtherAttempt, record) if record.attempt == 2));
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn evidence_about_what_is_not_in_doubt_is_refused_with_what_is_there() {
    let shop = shop();
    let ticket = shop.execute().await;
    let about = About::of(&shop.record().await.unwrap());
    let settled = shop.engine.settle(&about, &it_happened("early")).await.unwrap();
    assert!(
        matches!(settled, Settled::Refused(Refusal::NotUnknown, record) if record.state == State::InProgress)
    );
    ticket.finish(completed("once")).await.unwrap();
    let settled = shop.engine.settle(&about, &it_happened("late")).await.unwrap();
    assert!(
        matches!(settled, Settled::Refused(Refusal::NotUnknown, record) if record.state == State::Completed)
    );
    let nobodys = About { operation_id: semel::OperationId::random(), attempt: Some(1) };
    assert_eq!(shop.engine.settle(&nobodys, &it_happened("what")).await.unwrap(), Settled::Missing);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_read_back_and_told_once() {
    for fault in [Fault::LostAnswer, Fault::LostCall] {
        let shop = shop();
        let (about, ticket) = doubted(&shop).await;
        shop.store.next(Call::Swap, [fault]);
        let settled = shop.engine.settle(&about, &it_happened("by the bank")).await.unwrap();
        assert!(matches!(settled, Settled::Done(_)));
        assert_eq!(shop.history(about.operation_id).await.len(), 2, "doubted, settled");
        assert_eq!(
            shop.counted.events(),
            [
                ("completed_without_resource", 1),
                ("reconcile_resolved", 1),
                ("reconcile_scheduled", 1),
                ("reserve_created", 1),
                ("store_error", 1)
            ]
        );
        drop(ticket);
    }
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_turns_up_late_is_done_once_under_its_token() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    let gate = Gate::new();
    // The first try reaches the store after the second: whichever comes first, the other finds its own token.
    shop.store.next(Call::Swap, [Fault::Late(gate.clone())]);
    let ours = it_happened("by the bank");
    assert!(matches!(shop.engine.settle(&about, &ours).await.unwrap(), Settled::Done(_)));
    gate.reached().await;
    gate.open();
    gate.reached().await;
    assert_eq!(shop.record().await.unwrap().owner, ours.settler);
    assert_eq!(shop.history(about.operation_id).await.len(), 2);
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn what_fails_after_a_lost_answer_may_still_be_done() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    let gate = Gate::new();
    shop.store.next(Call::Swap, [Fault::Late(gate.clone()), Fault::Unavailable]);
    let ours = it_happened("by the bank");
    let failed = shop.engine.settle(&about, &ours).await;
    assert!(matches!(failed, Err(StoreError::Lost(_))), "{failed:?}");
    gate.reached().await;
    gate.open();
    gate.reached().await;
    assert_eq!(shop.record().await.unwrap().owner, ours.settler, "and then it is");
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn the_same_settlement_brought_again_is_done() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    let ours = it_happened("by the bank");
    shop.engine.settle(&about, &ours).await.unwrap();
    assert!(matches!(shop.engine.settle(&about, &ours).await.unwrap(), Settled::Done(_)));
    assert_eq!(shop.history(about.operation_id).await.len(), 2);
    assert!(shop.counted.events().contains(&("reconcile_resolved", 1)));
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn of_two_settlers_one_wins_and_the_other_is_told() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    let gate = Gate::new();
    shop.store.next(Call::Swap, [Fault::Held(gate.clone())]);
    let first = tokio::spawn({
        let (shop, ours) = (shop.clone(), it_happened("by the bank"));
        async move { shop.engine.settle(&about, &ours).await }
    });
    gate.reached().await;
    // Somebody else settles, by another way to the same store, before the first one's write is done.
    let winner = settlement(Evidence::NotExecuted);
    assert!(matches!(shop.elsewhere().engine.settle(&about, &winner).await.unwrap(), Settled::Done(_)));
    gate.open();
    let refused = first.await.unwrap().unwrap();
    assert!(
        matches!(refused, Settled::Refused(Refusal::NotUnknown, record) if record.state == State::FailedRetryable)
    );
    assert_eq!(shop.record().await.unwrap().owner, winner.settler);
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_or_a_remark_in_between_only_costs_another_try() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    let gate = Gate::new();
    shop.store.next(Call::Swap, [Fault::Held(gate.clone())]);
    let ours = it_happened("by the bank");
    let settling = tokio::spawn({
        let (shop, ours) = (shop.clone(), ours.clone());
        async move { shop.engine.settle(&about, &ours).await }
    });
    gate.reached().await;
    let record = shop.record().await.unwrap();
    let remark = semel::transition::remark(&record, Actor::Webhook("bank".into()), None);
    let semel::transition::Change::Put { next, history } = remark else { unreachable!() };
    let swap = semel::Swap { expected: record.expected(), next, history };
    semel::Store::swap(&shop.memory, vec![swap]).await.unwrap();
    gate.open();
    assert!(matches!(settling.await.unwrap().unwrap(), Settled::Done(_)));
    assert_eq!(shop.history(about.operation_id).await.len(), 3, "doubted, remarked, settled");
    drop(ticket);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_settles_nothing() {
    let shop = shop();
    let (about, ticket) = doubted(&shop).await;
    shop.store.always(Call::Swap, Fault::Unavailable);
    let settled = shop.engine.settle(&about, &it_happened("by the bank")).await;
    assert!(matches!(settled, Err(StoreError::Unavailable(_))));
    shop.store.heal();
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    drop(ticket);
}
