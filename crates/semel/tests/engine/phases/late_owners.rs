//! An owner that slept through its lease and wakes up after somebody took over: it writes nothing, and begins nothing.

use super::desk::{Desk, Kind, Place, Stop};
use crate::support::LEASE;
use semel::transition::Refusal;
use semel::{Interruption, PhaseError, State};
use semel_testing::store::Gate;

/// Where the first owner sleeps.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Asleep {
    BeforeTheRow,
    BeforeTheCall,
    AfterTheCall,
    BetweenTheCalls,
}

#[tokio::test(start_paused = true)]
async fn a_late_owner_is_refused_its_next_commit_and_begins_no_further_effect() {
    for asleep in [Asleep::BeforeTheRow, Asleep::BeforeTheCall, Asleep::AfterTheCall, Asleep::BetweenTheCalls]
    {
        for kind in Kind::ALL {
            let second = Desk::open(kind);
            let first = second.elsewhere();
            let gate = Gate::new();
            match asleep {
                Asleep::BeforeTheRow => first.stops(Place::BeforeTheRow, &gate),
                Asleep::BeforeTheCall => first.bank.stops(Stop::Before, &gate),
                Asleep::AfterTheCall => first.bank.stops(Stop::After, &gate),
                Asleep::BetweenTheCalls => first.stops(Place::BetweenTheCalls, &gate),
            }
            let sleeping = tokio::spawn({
                let first = first.clone();
                async move { first.serve().await }
            });
            gate.reached().await;
            second.shop.clock.advance(LEASE);
            let end = second.serve().await;
            let in_the_call = matches!(asleep, Asleep::BeforeTheCall | Asleep::AfterTheCall);
            let unknown = in_the_call && kind == Kind::AtMostOnce;
            assert_eq!(
                end.state,
                if unknown { State::Unknown } else { State::Completed },
                "{asleep:?}, {kind:?}"
            );
            let letters = second.post.called_by();
            let record = second.shop.record().await;

            gate.open();
            let late = sleeping.await.unwrap();
            let fenced = matches!(late.error, Some(PhaseError::Refused(Refusal::Fenced)));
            // A bank that said "never" to the second owner refuses the first one's call, which gets no answer.
            let turned_away = kind == Kind::Queryable && asleep == Asleep::BeforeTheCall;
            assert!(fenced || turned_away, "{asleep:?}, {kind:?}: {:?}", late.error);
            assert_eq!(late.interruption, Some(Interruption::InDoubt), "{asleep:?}, {kind:?}");
            assert!(late.fenced, "nor has it a say in how it ended");
            assert_eq!(second.post.called_by(), letters, "no further effect");
            assert_eq!((second.rows(), second.bank.effects()), (1, 1), "{asleep:?}, {kind:?}");
            assert_eq!(second.shop.record().await, record, "nothing of it is written");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_lost_the_operation_while_it_asked_does_not_repeat_the_call() {
    // The one that took over is taken over itself before it has looked at what it found.
    let third = Desk::open(Kind::Deduplicated);
    let gone = Gate::new();
    let (first, second) = (third.elsewhere(), third.elsewhere());
    third.bank.stops(Stop::After, &gone);
    let sleeping = tokio::spawn(async move { first.serve().await });
    gone.reached().await;
    third.shop.clock.advance(LEASE);
    let ticket = second.shop.execute().await;
    third.shop.clock.advance(LEASE);
    assert_eq!(third.serve().await.state, State::Completed);
    assert_eq!(third.bank.called_by(), [1, 3]);
    let late = second.attempt(ticket).await;
    assert!(matches!(late.error, Some(PhaseError::Refused(Refusal::Fenced))), "{:?}", late.error);
    assert_eq!(third.bank.called_by(), [1, 3], "the second one never called");
    gone.open();
    assert!(sleeping.await.unwrap().fenced);
}
