//! Operations with effects outside: what is done is not done again, and what may have been done is treated as promised.

mod crashes;
mod desk;
mod doubt;
mod faults;
mod late_owners;
mod misuse;

use crate::support::{Shop, completed, replayed, retryable};
use desk::{Desk, Kind, Silence};
use semel::{Decision, Deduplicated, Identity, Interruption, PhaseError, State};

#[tokio::test(start_paused = true)]
async fn an_operation_goes_through_its_phases_and_each_is_a_recovery_point() {
    for kind in Kind::ALL {
        let desk = Desk::open(kind);
        let end = desk.serve().await;
        assert_eq!((end.state, end.interruption), (State::Completed, None), "{kind:?}");
        assert_eq!((desk.runs(), desk.rows()), (1, 1));
        assert_eq!((desk.bank.called_by(), desk.post.called_by()), (vec![1], vec![1]));
        assert!(desk.bank.asked().is_empty(), "whoever got an answer has nothing to ask");
        assert_eq!(end.receipt.unwrap(), desk.bank.only_receipt());
        assert_eq!(desk.shop.record().await.unwrap().recovery_point.as_deref(), Some("mailed"));
        assert_eq!(
            desk.shop.store.batches(semel_testing::store::Call::Swap),
            [1; 5],
            "two for a call, one for the end"
        );
        assert!(matches!(desk.shop.decide().await, Decision::Replay(_)));
    }
}

#[tokio::test(start_paused = true)]
async fn an_effect_has_the_same_identity_on_every_attempt_and_no_two_have_the_same() {
    let shop = Shop::new();
    let mut seen = Vec::new();
    for attempt in 1..=3 {
        let ticket = shop.execute().await;
        let mut phases = ticket.phases().unwrap();
        for name in ["charged", "mailed"] {
            let silence = phases
                .foreign(name, Deduplicated, async |identity: Identity| {
                    assert_eq!(identity.attempt(), attempt);
                    seen.push((name, identity.into_key()));
                    // The second call is never answered, so that the next attempt makes it again.
                    if name == "charged" { Ok(()) } else { Err(Silence) }
                })
                .await;
            assert_eq!(silence.is_err(), name == "mailed");
        }
        drop(phases);
        let keys = [ticket.downstream_key("charged"), ticket.downstream_key("mailed")];
        assert_ne!(keys[0], keys[1]);
        assert!(seen.iter().all(|(name, key)| *key == keys[usize::from(*name == "mailed")]));
        // A handler that knows better than the phases that nothing came of the call.
        ticket.finish(retryable()).await.unwrap();
    }
    let names: Vec<_> = seen.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["charged", "mailed", "mailed", "mailed"]);
}

#[tokio::test(start_paused = true)]
async fn the_identity_is_not_shown_to_whoever_prints_it() {
    let ticket = Shop::new().execute().await;
    let key = ticket.downstream_key("charged");
    let mut phases = ticket.phases().unwrap();
    let shown: String = phases
        .foreign::<_, ()>("charged", Deduplicated, async |identity| Ok(format!("{identity:?}")))
        .await
        .unwrap();
    assert!(shown.contains("attempt: 1") && !shown.contains(&key), "{shown}");
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_answered_is_unknown_whatever_was_promised_but_for_a_word_that_it_never_will_be() {
    for kind in Kind::ALL {
        // Without a word, the other side did it or did not.
        for did_it in [false, true] {
            let desk = Desk::open(kind);
            desk.bank.falls_silent(did_it);
            let end = desk.serve().await;
            assert_eq!(desk.bank.called_by(), [1]);
            match (kind, did_it) {
                (Kind::Queryable, true) => {
                    assert_eq!((end.state, end.receipt), (State::Completed, Some(desk.bank.only_receipt())));
                }
                (Kind::Queryable, false) => {
                    assert!(matches!(end.error, Some(PhaseError::Call(Silence))), "{:?}", end.error);
                    assert_eq!(
                        (end.interruption, end.state),
                        (Some(Interruption::Resumable), State::FailedRetryable)
                    );
                    let second = desk.serve().await;
                    assert_eq!((second.state, desk.bank.called_by()), (State::Completed, vec![1, 2]));
                    assert_eq!(
                        desk.bank.asked(),
                        [1, 1],
                        "after the silence, and again before the next call"
                    );
                }
                (Kind::Deduplicated | Kind::AtMostOnce, _) => {
                    assert!(matches!(end.error, Some(PhaseError::Call(Silence))), "{:?}", end.error);
                    assert_eq!((end.interruption, end.state), (Some(Interruption::InDoubt), State::Unknown));
                    assert!(
                        matches!(desk.shop.decide().await, Decision::Unknown { .. }),
                        "nobody tries again"
                    );
                }
            }
            assert_eq!(desk.bank.effects(), u32::from(did_it || kind == Kind::Queryable));
            assert_eq!((desk.runs(), desk.rows()), (1, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_cannot_be_asked_after_all_leaves_doubt() {
    let desk = Desk::open(Kind::Queryable);
    desk.bank.falls_silent(true);
    desk.bank.cannot_be_asked();
    let end = desk.serve().await;
    assert!(matches!(end.error, Some(PhaseError::Call(Silence))));
    assert_eq!((end.interruption, end.state), (Some(Interruption::InDoubt), State::Unknown));
}

#[tokio::test(start_paused = true)]
async fn what_the_other_side_said_for_certain_is_a_result_and_a_refusal_too() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let mut phases = ticket.phases().unwrap();
    let said: Result<String, String> = phases
        .foreign::<_, Silence>("charged", Deduplicated, async |_| Ok(Err("declined".to_owned())))
        .await
        .unwrap();
    assert_eq!((said, ticket.interruption()), (Err("declined".into()), None));
    ticket.finish(completed("declined")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "declined");
}
