//! A program that does not know its own phases again is stopped, and the outcome is doubt.

use super::desk::{Desk, Kind, Place, Silence};
use crate::support::{Shop, completed, retryable};
use bytes::Bytes;
use semel::{
    AtMostOnce, Deduplicated, Entered, Identity, Interruption, OutOfStep, PhaseError, Phases, Ticket,
};
use semel_testing::store::Gate;
use std::collections::BTreeMap;

/// A call that is not to be made.
async fn never(_: Identity) -> Result<String, Silence> {
    panic!("it is not to be called")
}

async fn refused(phases: &mut Phases, name: &str) -> OutOfStep {
    match phases.foreign(name, Deduplicated, never).await {
        Err(PhaseError::OutOfStep(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// A first attempt that called, got no answer, and was called retryable by somebody who should not have.
async fn left_at_sent(shop: &Shop) {
    let first = shop.execute().await;
    let silence =
        first.phases().unwrap().foreign("charged", AtMostOnce, async |_| Err::<(), _>(Silence)).await;
    assert!(silence.is_err());
    first.finish(retryable()).await.unwrap();
}

fn in_doubt(ticket: &Ticket) {
    assert_eq!(ticket.interruption(), Some(Interruption::InDoubt));
}

#[tokio::test(start_paused = true)]
async fn a_phase_is_entered_once() {
    let desk = Desk::open(Kind::Deduplicated);
    let ticket = desk.shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    desk.charged(&mut phases).await.unwrap();
    let why = refused(&mut phases, "charged").await;
    assert!(matches!(&why, OutOfStep::Twice(name) if name == "charged"), "{why}");
    assert!(why.to_string().contains("\"charged\""), "{why}");
    in_doubt(&ticket);
    assert_eq!(desk.bank.called_by(), [1]);

    desk.created(&mut phases).await.unwrap();
    let why = desk.created(&mut phases).await;
    assert!(matches!(why, Err(PhaseError::OutOfStep(OutOfStep::Twice(_)))), "{why:?}");
    assert_eq!(desk.rows(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_could_be_taken_for_something_else_is_refused() {
    for name in ["", ":", "charged:sent"] {
        let ticket = Shop::new().execute().await;
        let mut phases = ticket.phases().unwrap();
        let why = refused(&mut phases, name).await;
        assert!(matches!(&why, OutOfStep::Name(refused) if refused == name), "{why}");
        in_doubt(&ticket);
        assert!(matches!(phases.local::<()>(name), Err(OutOfStep::Name(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_before_a_sent_call_has_an_answer() {
    let shop = Shop::new();
    left_at_sent(&shop).await;
    // The phase was renamed, or one was put before it.
    for (local, name) in [(false, "paid"), (true, "paid"), (true, "charged")] {
        let ticket = shop.execute().await;
        let mut phases = ticket.phases().unwrap();
        let why = if local {
            let Err(why) = phases.local::<()>(name) else { panic!("it is out of step") };
            why
        } else {
            refused(&mut phases, name).await
        };
        let OutOfStep::AnotherIsSent { entered, sent } = &why else { panic!("{why}") };
        assert!(entered.starts_with(name) && sent.starts_with("charged"), "{why}");
        in_doubt(&ticket);
        ticket.finish(retryable()).await.unwrap();
    }
    // What was sent is still known when the program is as it was.
    let ticket = shop.execute().await;
    let unknown = ticket.phases().unwrap().foreign("charged", AtMostOnce, never).await;
    assert!(matches!(unknown, Err(PhaseError::Unknown)), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_ignores_that_a_call_has_no_answer_gets_no_further() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let silence = phases.foreign("charged", AtMostOnce, async |_| Err::<(), _>(Silence)).await;
    assert!(matches!(silence, Err(PhaseError::Call(Silence))));
    let why = refused(&mut phases, "mailed").await;
    assert!(matches!(why, OutOfStep::AnotherIsSent { .. }), "{why}");
    in_doubt(&ticket);
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_phases_did_not_write_is_not_guessed_at() {
    for checkpoint in [None, Some("pay_1"), Some(r#"{"phases":[["created"]]}"#)] {
        let shop = Shop::new();
        let mut first = shop.execute().await;
        first.advance("created", checkpoint.map(|text| Bytes::from_static(text.as_bytes()))).await.unwrap();
        first.finish(retryable()).await.unwrap();
        let second = shop.execute().await;
        assert!(matches!(second.phases(), Err(OutOfStep::Unreadable(_))), "{checkpoint:?}");
        in_doubt(&second);
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_of_another_shape_is_not_guessed_at() {
    let shop = Shop::new();
    let first = shop.execute().await;
    let mut phases = first.phases().unwrap();
    phases.foreign::<_, Silence>("charged", Deduplicated, async |_| Ok(7)).await.unwrap();
    first.finish(retryable()).await.unwrap();
    let second = shop.execute().await;
    let why = refused(&mut second.phases().unwrap(), "charged").await;
    assert!(matches!(why, OutOfStep::Unreadable(_)), "{why}");
    in_doubt(&second);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_kept_is_doubt_for_the_call_was_made() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    // JSON has no objects by such names.
    let odd = BTreeMap::from([((1, 2), 3)]);
    let kept = phases.foreign::<_, Silence>("charged", Deduplicated, async |_| Ok(odd.clone())).await;
    assert!(matches!(kept, Err(PhaseError::Kept(_))), "{kept:?}");
    in_doubt(&ticket);
    assert!(
        matches!(phases.local::<()>("created"), Err(OutOfStep::AnotherIsSent { .. })),
        "nor does it go on"
    );
}

#[tokio::test(start_paused = true)]
async fn an_attempt_has_one_set_of_phases() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    phases.foreign::<_, Silence>("charged", Deduplicated, async |_| Ok(7)).await.unwrap();
    assert!(matches!(ticket.phases(), Err(OutOfStep::TakenBefore)));
    in_doubt(&ticket);
    ticket.finish(completed("once")).await.unwrap();
}

/// Its transaction may be committed all the same, and another recovery point would take the place of its own.
#[tokio::test(start_paused = true)]
async fn nothing_is_done_before_it_is_known_what_became_of_a_local_phase() {
    for local in [true, false] {
        let desk = Desk::open(Kind::Deduplicated);
        let ticket = desk.shop.execute().await;
        let mut phases = ticket.phases().unwrap();
        let gate = Gate::new();
        desk.stops(Place::BeforeTheRow, &gate);
        tokio::select! {
            created = desk.created(&mut phases) => panic!("{created:?}"),
            () = gate.reached() => {}
        }
        let why = if local {
            let Err(why) = phases.local::<()>("mailed") else { panic!("it is out of step") };
            why
        } else {
            refused(&mut phases, "mailed").await
        };
        let OutOfStep::AnotherIsOpen { entered, open } = &why else { panic!("{why}") };
        assert_eq!((entered.as_str(), open.as_str()), ("mailed", "created"));
        in_doubt(&ticket);
    }
}

#[tokio::test(start_paused = true)]
async fn a_local_phase_that_is_known_to_have_left_nothing_holds_nobody_up() {
    let ticket = Shop::new().execute().await;
    let mut phases = ticket.phases().unwrap();
    assert!(matches!(phases.local::<()>("created"), Ok(Entered::Now(_))));
    phases.rolled_back();
    assert!(matches!(phases.local::<()>("noted"), Ok(Entered::Now(_))));
    assert_eq!(ticket.interruption(), None);
    phases.failed();
    assert!(matches!(phases.local::<()>("mailed"), Ok(Entered::Now(_))));
    assert_eq!(ticket.interruption(), Some(Interruption::Resumable));
}
