//! A process dies at each step of an operation: what the next one does, for each promise.

use super::desk::{Desk, Kind, Place, Stop};
use crate::support::{LEASE, replayed};
use semel::{Decision, Interruption, PhaseError, State};
use semel_testing::store::{Call, Fault, Gate};

/// Where the first process dies. The writes of the first attempt are, in their order: the charge is sent, its result, the letter is
/// sent, its result, the end.
#[derive(Clone, Copy, Debug)]
enum Death {
    At(Place),
    BeforeWrite(usize),
    AfterWrite(usize),
    AtTheBank(Stop),
    AtThePost(Stop),
}

/// Which attempts called the bank in the end, for each promise.
struct Calls {
    deduplicated: &'static [u32],
    queryable: &'static [u32],
    at_most_once: &'static [u32],
    /// Whether the call may have been made, and nobody knows.
    sent: bool,
}

const fn settled(by: &'static [u32]) -> Calls {
    Calls { deduplicated: by, queryable: by, at_most_once: by, sent: false }
}

#[rustfmt::skip]
const DEATHS: [(Death, Calls); 17] = [
    (Death::At(Place::BeforeTheRow), settled(&[2])),
    (Death::At(Place::AfterTheRow), settled(&[2])),
    (Death::BeforeWrite(0), settled(&[2])),
    (Death::AfterWrite(0), Calls { deduplicated: &[2], queryable: &[2], at_most_once: &[], sent: true }),
    (Death::AtTheBank(Stop::Before), Calls { deduplicated: &[1, 2], queryable: &[1, 2], at_most_once: &[1], sent: true }),
    (Death::AtTheBank(Stop::After), Calls { deduplicated: &[1, 2], queryable: &[1], at_most_once: &[1], sent: true }),
    (Death::BeforeWrite(1), Calls { deduplicated: &[1, 2], queryable: &[1], at_most_once: &[1], sent: true }),
    (Death::AfterWrite(1), settled(&[1])),
    (Death::At(Place::BetweenTheCalls), settled(&[1])),
    (Death::BeforeWrite(2), settled(&[1])),
    (Death::AfterWrite(2), settled(&[1])),
    (Death::AtThePost(Stop::Before), settled(&[1])),
    (Death::AtThePost(Stop::After), settled(&[1])),
    (Death::BeforeWrite(3), settled(&[1])),
    (Death::AfterWrite(3), settled(&[1])),
    (Death::At(Place::BeforeTheEnd), settled(&[1])),
    (Death::BeforeWrite(4), settled(&[1])),
];

/// Nothing of the process reaches the store any more.
fn is_gone(desk: &Desk) {
    for call in [Call::Create, Call::Swap, Call::Remove, Call::Read] {
        desk.shop.store.always(call, Fault::Hang);
    }
}

/// Lets a process work at the operation until it dies.
async fn dies(desk: &Desk, writes_before: usize, death: Death) {
    let gate = Gate::new();
    let at_write = |number: usize, fault: Fault| {
        let sound = std::iter::repeat_n(Fault::None, writes_before + number);
        desk.shop.store.next(Call::Swap, sound.chain([fault]));
    };
    match death {
        Death::At(place) => desk.stops(place, &gate),
        Death::BeforeWrite(number) => at_write(number, Fault::Held(gate.clone())),
        Death::AfterWrite(number) => at_write(number, Fault::HeldAnswer(gate.clone())),
        Death::AtTheBank(stop) => desk.bank.stops(stop, &gate),
        Death::AtThePost(stop) => desk.post.stops(stop, &gate),
    }
    let working = tokio::spawn({
        let desk = desk.clone();
        async move { desk.serve().await }
    });
    gate.reached().await;
    is_gone(desk);
    working.abort();
    assert!(working.await.unwrap_err().is_cancelled(), "{death:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_takes_over_goes_on_after_the_last_recovery_point_and_treats_a_sent_call_as_promised() {
    for (death, calls) in DEATHS {
        for kind in Kind::ALL {
            let second = Desk::open(kind);
            let first = second.elsewhere();
            dies(&first, 0, death).await;
            assert!(
                matches!(second.shop.decide().await, Decision::InProgress { .. }),
                "while the lease runs"
            );
            second.shop.clock.advance(LEASE);
            let end = second.serve().await;
            assert_eq!(end.attempt, 2);

            let called_by = match kind {
                Kind::Deduplicated => calls.deduplicated,
                Kind::Queryable => calls.queryable,
                Kind::AtMostOnce => calls.at_most_once,
            };
            assert_eq!(second.bank.called_by(), called_by, "{death:?}, {kind:?}");
            let asks = calls.sent && kind == Kind::Queryable;
            assert_eq!(second.bank.asked(), if asks { vec![1] } else { vec![] }, "{death:?}, {kind:?}");
            assert_eq!((second.runs(), second.rows()), (1, 1), "{death:?}, {kind:?}: not again");
            if calls.sent && kind == Kind::AtMostOnce {
                assert!(matches!(end.error, Some(PhaseError::Unknown)), "{:?}", end.error);
                assert_eq!((end.interruption, end.state), (Some(Interruption::InDoubt), State::Unknown));
                assert!(second.post.called_by().is_empty(), "nothing is begun on top of doubt");
                assert!(second.bank.effects() <= 1);
            } else {
                assert_eq!((end.interruption, end.state), (None, State::Completed), "{death:?}, {kind:?}");
                assert_eq!(end.receipt.unwrap(), second.bank.only_receipt(), "as the bank has it");
                assert_eq!(second.post.effects(), 1);
                assert_ne!(second.bank.identity(), second.post.identity());
                assert_eq!(replayed(second.shop.decide().await), "charged");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_after_the_end_is_stored_leaves_nothing_to_do() {
    let second = Desk::open(Kind::AtMostOnce);
    dies(&second.elsewhere(), 0, Death::AfterWrite(4)).await;
    assert_eq!(replayed(second.shop.decide().await), "charged");
    assert_eq!((second.bank.called_by(), second.post.called_by()), (vec![1], vec![1]));
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_dies_too_is_taken_over_from_the_same_recovery_point() {
    // The writes of the second attempt are: it takes over, gives a sign of life before the call, commits the result.
    let deaths = [
        (Death::AfterWrite(0), [1, 3].as_slice()),
        (Death::BeforeWrite(1), &[1, 3]),
        (Death::AfterWrite(1), &[1, 3]),
        (Death::AtTheBank(Stop::After), &[1, 2, 3]),
        (Death::BeforeWrite(2), &[1, 2, 3]),
        (Death::AfterWrite(2), &[1, 2]),
    ];
    for (death, called_by) in deaths {
        let third = Desk::open(Kind::Deduplicated);
        dies(&third.elsewhere(), 0, Death::AtTheBank(Stop::After)).await;
        third.shop.clock.advance(LEASE);
        dies(&third.elsewhere(), 0, death).await;
        third.shop.clock.advance(LEASE);
        let end = third.serve().await;
        assert_eq!((end.attempt, end.state), (3, State::Completed), "{death:?}");
        assert_eq!(third.bank.called_by(), called_by, "{death:?}");
        assert_eq!((third.bank.effects(), third.post.called_by(), third.rows()), (1, vec![3], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_bank_that_cannot_be_asked_leaves_doubt_to_whoever_takes_over() {
    let second = Desk::open(Kind::Queryable);
    dies(&second.elsewhere(), 0, Death::AtTheBank(Stop::After)).await;
    second.shop.clock.advance(LEASE);
    second.bank.cannot_be_asked();
    let end = second.serve().await;
    assert!(matches!(end.error, Some(PhaseError::Call(_))), "{:?}", end.error);
    assert_eq!((end.interruption, end.state), (Some(Interruption::InDoubt), State::Unknown));
    assert_eq!((second.bank.called_by(), second.bank.effects()), (vec![1], 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_arrives_after_the_other_side_said_never_is_refused_there() {
    let second = Desk::open(Kind::Queryable);
    let first = second.elsewhere();
    let on_its_way = Gate::new();
    second.bank.stops(Stop::Before, &on_its_way);
    let working = tokio::spawn({
        let first = first.clone();
        async move { first.serve().await }
    });
    on_its_way.reached().await;
    second.shop.clock.advance(LEASE);
    let end = second.serve().await;
    assert_eq!((end.state, second.bank.called_by()), (State::Completed, vec![1, 2]));
    on_its_way.open();
    let late = working.await.unwrap();
    assert!(late.fenced);
    assert_eq!(second.bank.effects(), 1, "the late call is refused");
}
