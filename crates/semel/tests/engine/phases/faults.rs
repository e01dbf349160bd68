//! The store fails at each write: what was done is known afterwards, or it is doubt; nothing is done twice.

use super::desk::{Desk, End, Kind, Silence, commit};
use crate::support::{LEASE, STORE_TIMEOUT, Shop, completed};
use semel::{
    BeginError, Decision, Deduplicated, Entered, Finish, Interruption, OutOfStep, Outcome, PhaseError, State,
    StoreError,
};
use semel_testing::store::{Call, Fault, Gate};
use std::collections::BTreeMap;

/// The writes of an attempt in their order: the charge is sent, its result, the letter is sent, its result, the end.
const SENT: usize = 0;
const RESULT: usize = 1;
const WRITES: usize = 5;

/// A desk whose store treats the writes from this one on as told.
fn failing(kind: Kind, write: usize, faults: impl IntoIterator<Item = Fault>) -> Desk {
    let desk = Desk::open(kind);
    desk.shop.store.next(Call::Swap, std::iter::repeat_n(Fault::None, write).chain(faults));
    desk
}

/// Asks again, as clients do, until nothing changes any more.
async fn retried(desk: &Desk) -> State {
    for _ in 0..5 {
        desk.shop.clock.advance(LEASE);
        match desk.shop.begin().await {
            Ok(Decision::Execute(ticket)) => drop(desk.attempt(ticket).await),
            Ok(Decision::Replay(_) | Decision::Unknown { .. }) => return desk.shop.state().await.unwrap(),
            Err(BeginError::Store(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("it never ends")
}

/// What can happen to a write.
fn faults() -> [Fault; 5] {
    let late = Gate::new();
    late.open_for_good();
    [Fault::Unavailable, Fault::LostAnswer, Fault::LostCall, Fault::Late(late), Fault::Hang]
}

/// Nothing was done twice.
fn done_once(desk: &Desk, kind: Kind, what: &str) {
    let calls = desk.bank.called_by();
    assert!(desk.bank.effects() <= 1 && desk.post.effects() <= 1, "{kind:?}, {what}: {calls:?}");
    if kind != Kind::Deduplicated {
        assert!(calls.len() <= 1, "{kind:?}, {what}: {calls:?}");
    }
    assert_eq!((desk.runs(), desk.rows()), (1, 1), "{kind:?}, {what}");
}

#[tokio::test(start_paused = true)]
async fn no_single_fault_makes_a_call_twice_or_leaves_doubt() {
    for kind in Kind::ALL {
        for write in 0..WRITES {
            for (number, fault) in faults().into_iter().chain([Fault::Panic]).enumerate() {
                let desk = failing(kind, write, [fault]);
                desk.serve().await;
                let what = format!("write {write}, fault {number}");
                assert_eq!(retried(&desk).await, State::Completed, "{kind:?}, {what}");
                done_once(&desk, kind, &what);
                assert_eq!(
                    (desk.bank.called_by().len(), desk.post.called_by().len()),
                    (1, 1),
                    "{kind:?}, {what}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn no_two_faults_make_a_call_twice() {
    for kind in Kind::ALL {
        let mut ends = BTreeMap::new();
        for write in 0..WRITES {
            for (number, fault) in faults().into_iter().enumerate() {
                for (other, another) in faults().into_iter().enumerate() {
                    let desk = failing(kind, write, [fault.clone(), another]);
                    desk.serve().await;
                    *ends.entry(retried(&desk).await.as_str()).or_insert(0) += 1;
                    done_once(&desk, kind, &format!("write {write}, faults {number} and {other}"));
                }
            }
        }
        assert!(ends["completed"] > 80, "{kind:?}: {ends:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_once_is_found_out() {
    for kind in Kind::ALL {
        for write in 0..WRITES {
            for fault in [Fault::LostAnswer, Fault::LostCall] {
                let desk = failing(kind, write, [fault]);
                let end = desk.serve().await;
                assert_eq!(
                    (end.attempt, end.state, end.interruption),
                    (1, State::Completed, None),
                    "write {write}"
                );
                assert_eq!((desk.bank.called_by(), desk.post.called_by()), (vec![1], vec![1]));
            }
        }
    }
}

fn is_lost(end: &End) -> bool {
    matches!(end.error, Some(PhaseError::Store(StoreError::Lost(_))))
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_before_the_call_leaves_it_to_the_next_attempt() {
    for kind in Kind::ALL {
        let desk = failing(kind, SENT, [Fault::Unavailable]);
        let end = desk.serve().await;
        assert!(matches!(end.error, Some(PhaseError::Store(StoreError::Unavailable(_)))), "{:?}", end.error);
        assert_eq!((end.interruption, end.state), (Some(Interruption::Resumable), State::FailedRetryable));
        assert!(desk.bank.called_by().is_empty(), "what is not written down is not done");
        let next = desk.serve().await;
        assert_eq!(
            (next.state, desk.bank.called_by(), desk.bank.asked()),
            (State::Completed, vec![2], vec![])
        );
        assert_eq!(desk.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn two_lost_answers_before_the_call_leave_what_the_store_has() {
    for kind in Kind::ALL {
        // It was not written: nobody can have called.
        let desk = failing(kind, SENT, [Fault::LostCall, Fault::LostCall]);
        let end = desk.serve().await;
        assert!(is_lost(&end), "{:?}", end.error);
        assert_eq!((end.interruption, end.state), (Some(Interruption::Resumable), State::FailedRetryable));
        assert_eq!(desk.serve().await.state, State::Completed);
        assert_eq!(desk.bank.called_by(), [2]);

        // It was written, and the next attempt cannot know that nobody called.
        let desk = failing(kind, SENT, [Fault::LostAnswer, Fault::LostAnswer]);
        let end = desk.serve().await;
        assert!(is_lost(&end), "{:?}", end.error);
        assert_eq!((end.interruption, end.state), (Some(Interruption::Resumable), State::FailedRetryable));
        let next = desk.serve().await;
        if kind == Kind::AtMostOnce {
            assert!(matches!(next.error, Some(PhaseError::Unknown)), "{:?}", next.error);
            assert_eq!((next.state, desk.bank.called_by()), (State::Unknown, vec![]));
        } else {
            assert_eq!((next.state, desk.bank.called_by()), (State::Completed, vec![2]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_tried_on_for_as_long_as_the_store_may_take() {
    let troubles = [
        vec![Fault::Unavailable],
        vec![Fault::Unavailable; 4],
        vec![Fault::LostAnswer, Fault::LostAnswer],
        vec![Fault::LostCall, Fault::LostCall],
    ];
    for kind in Kind::ALL {
        for trouble in troubles.clone() {
            let desk = failing(kind, RESULT, trouble);
            let end = desk.serve().await;
            assert_eq!(
                (end.attempt, end.state, end.interruption),
                (1, State::Completed, None),
                "{:?}",
                end.error
            );
            assert_eq!((desk.bank.called_by(), desk.post.called_by()), (vec![1], vec![1]));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_written_is_doubt_and_nobody_calls_again() {
    for kind in Kind::ALL {
        for fault in [Fault::Unavailable, Fault::LostAnswer, Fault::LostCall, Fault::Hang] {
            let desk = failing(kind, SENT, [Fault::None]);
            desk.shop.store.always(Call::Swap, fault);
            let ticket = desk.shop.execute().await;
            let mut phases = ticket.phases().unwrap();
            let began = tokio::time::Instant::now();
            let charged = desk.charged(&mut phases).await;
            assert!(matches!(charged, Err(PhaseError::Store(_))), "{charged:?}");
            assert!(began.elapsed() <= 3 * STORE_TIMEOUT, "in bounded time");
            assert_eq!(ticket.interruption(), Some(Interruption::InDoubt));
            desk.shop.store.heal();
            assert!(matches!(ticket.finish(in_doubt()).await, Ok(Finish::Unknown)));
            assert_eq!(retried(&desk).await, State::Unknown);
            assert_eq!(desk.bank.called_by(), [1]);
        }
    }
}

fn in_doubt() -> Outcome {
    Outcome::Unknown { error: "in_doubt".into() }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_before_a_call_is_repeated_does_not_have_it_repeated() {
    let desk = failing(Kind::Queryable, SENT, [Fault::LostAnswer, Fault::LostAnswer]);
    desk.serve().await;
    // It is taken, found out that it never happened, and then the store fails.
    desk.shop.store.next(Call::Swap, [Fault::None, Fault::Unavailable]);
    let end = desk.serve().await;
    assert!(matches!(end.error, Some(PhaseError::Store(_))), "{:?}", end.error);
    assert_eq!((end.interruption, end.state), (Some(Interruption::Resumable), State::FailedRetryable));
    assert!(desk.bank.called_by().is_empty());
    assert_eq!(desk.serve().await.state, State::Completed);
    assert_eq!((desk.bank.called_by(), desk.bank.asked()), (vec![3], vec![1, 2]));
}

#[tokio::test(start_paused = true)]
async fn the_lost_commit_of_a_local_phase_is_read_back() {
    for is_there in [true, false] {
        let shop = Shop::new();
        let ticket = shop.execute().await;
        let mut phases = ticket.phases().unwrap();
        let Entered::Now(step) = phases.local::<String>("created").unwrap() else { panic!("it is new") };
        if is_there {
            commit(&shop.memory, &step.claim(), &step.act(&"pay_1").unwrap()).await.unwrap();
        }
        let found = phases.lost::<String>("created", StoreError::Lost("as told".into())).await;
        if is_there {
            assert_eq!((found.unwrap(), ticket.interruption()), ("pay_1".into(), None));
            assert_eq!(ticket.recovery_point().unwrap().unwrap().0, "created");
        } else {
            assert!(matches!(found, Err(StoreError::Lost(_))), "{found:?}");
            assert_eq!(ticket.interruption(), Some(Interruption::Resumable));
        }
        let called = phases.foreign::<_, Silence>("charged", Deduplicated, async |_| Ok(7)).await;
        if is_there {
            assert_eq!(called.unwrap(), 7, "the next phase goes on from what is there");
        } else {
            let open = |why: &OutOfStep| matches!(why, OutOfStep::AnotherIsOpen { .. });
            assert!(
                matches!(&called, Err(PhaseError::OutOfStep(why)) if open(why)),
                "it may still come: {called:?}"
            );
        }
        ticket.finish(completed("once")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_commit_is_not_taken_for_ours() {
    let desk = Desk::open(Kind::Deduplicated);
    let ticket = desk.shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let Entered::Now(_) = phases.local::<String>("created").unwrap() else { panic!("it is new") };
    desk.shop.clock.advance(LEASE);
    assert_eq!(desk.elsewhere().serve().await.state, State::Completed);
    let found = phases.lost::<String>("created", StoreError::Lost("as told".into())).await;
    assert!(matches!(found, Err(StoreError::Lost(_))), "{found:?}");
}
