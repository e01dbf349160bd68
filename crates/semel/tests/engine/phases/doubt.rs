//! The client was told that it takes too long, and the outcome is unknown: what is under way may end, and nothing else begins.

use super::desk::{Desk, Kind, Place, Silence, Stop};
use crate::support::{LEASE, Shop, completed, replayed, retryable};
use semel::transition::Refusal;
use semel::{AtMostOnce, Decision, Finish, Interruption, PhaseError, State};
use semel_testing::store::Gate;

#[tokio::test(start_paused = true)]
async fn a_call_that_is_answered_after_the_time_out_still_counts_and_nothing_else_begins() {
    let desk = Desk::open(Kind::AtMostOnce);
    let gate = Gate::new();
    desk.bank.stops(Stop::After, &gate);
    let ticket = desk.shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let doubting = async {
        gate.reached().await;
        ticket.doubt("timeout").await;
        assert_eq!(desk.shop.state().await, Some(State::Unknown));
        gate.open();
    };
    let (charged, ()) = tokio::join!(desk.charged(&mut phases), doubting);
    assert_eq!(charged.unwrap(), desk.bank.only_receipt());
    assert_eq!(ticket.interruption(), None, "it knows how the call ended");

    // A row, a call: both would be begun now, and are refused.
    let row = desk.created(&mut phases).await;
    assert!(matches!(row, Err(PhaseError::Refused(Refusal::InDoubt))), "{row:?}");
    assert_eq!(desk.rows(), 0);
    let mail = phases
        .foreign("mailed", AtMostOnce, async |_| -> Result<(), Silence> { panic!("it is not to be called") })
        .await;
    assert!(matches!(mail, Err(PhaseError::Refused(Refusal::InDoubt))), "{mail:?}");
    assert_eq!(ticket.interruption(), Some(Interruption::InDoubt));

    assert!(matches!(ticket.finish(completed("late")).await, Ok(Finish::Stored)));
    assert_eq!(replayed(desk.shop.decide().await), "late");
}

#[tokio::test(start_paused = true)]
async fn doubt_that_comes_between_two_calls_lets_no_other_one_begin() {
    let desk = Desk::open(Kind::Deduplicated);
    let gate = Gate::new();
    desk.stops(Place::BetweenTheCalls, &gate);
    let ticket = desk.shop.execute().await;
    let doubting = ticket.doubt("timeout");
    let working = tokio::spawn({
        let desk = desk.clone();
        async move { desk.attempt(ticket).await }
    });
    gate.reached().await;
    doubting.await;
    gate.open();
    let end = working.await.unwrap();
    assert!(matches!(end.error, Some(PhaseError::Refused(Refusal::InDoubt))), "{:?}", end.error);
    assert_eq!((end.interruption, end.state), (Some(Interruption::InDoubt), State::Unknown));
    assert_eq!((desk.bank.called_by(), desk.post.called_by()), (vec![1], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_doubt_takes_nothing_up_where_an_earlier_one_left_it() {
    let desk = Desk::open(Kind::Deduplicated);
    let gone = Gate::new();
    desk.bank.stops(Stop::Before, &gone);
    let sleeping = tokio::spawn({
        let first = desk.elsewhere();
        async move { first.serve().await }
    });
    gone.reached().await;
    desk.shop.clock.advance(LEASE);
    let ticket = desk.shop.execute().await;
    ticket.doubt("timeout").await;
    let end = desk.attempt(ticket).await;
    assert!(matches!(end.error, Some(PhaseError::Refused(Refusal::InDoubt))), "{:?}", end.error);
    assert_eq!(desk.bank.called_by(), [1], "the sign of life before the call was refused");
    drop(sleeping);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cut_off_in_the_middle_leaves_doubt() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let endless = async |_| std::future::pending::<Result<(), Silence>>().await;
    let patience = std::time::Duration::from_secs(1);
    assert!(tokio::time::timeout(patience, phases.foreign("charged", AtMostOnce, endless)).await.is_err());
    assert_eq!(ticket.interruption(), Some(Interruption::InDoubt));
    ticket.finish(retryable()).await.unwrap();
    assert_eq!(shop.state().await, Some(State::FailedRetryable), "whoever knows better may say so");
    // The next attempt does not know, and nobody asks it to guess.
    let ticket = shop.execute().await;
    let unknown =
        ticket.phases().unwrap().foreign("charged", AtMostOnce, async |_| Err::<(), _>(Silence)).await;
    assert!(matches!(unknown, Err(PhaseError::Unknown)), "{unknown:?}");
    drop(ticket);
    shop.engine.drained().await;
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
}
