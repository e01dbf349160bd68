//! The store's clock at the small bound, and the mistakes that have to be caught.

use semel_model::{ClockBounds, ClockMistake, check_clock};

/// One instance is enough for every mistake.
const ONE: ClockBounds = ClockBounds::SMALL[0];

fn broken(bounds: ClockBounds, mistake: Option<ClockMistake>) -> Vec<&'static str> {
    let outcome = check_clock(bounds, mistake, |_, _| {});
    if mistake.is_none() {
        assert!(outcome.broken.is_empty(), "{:#?}", outcome.broken);
    }
    let missing = if mistake.is_none() { outcome.missing } else { vec![] };
    outcome.broken.into_iter().map(|(name, _)| name).chain(missing).collect()
}

#[test]
fn no_window_and_no_lease_is_over_early_whatever_the_clock_does() {
    for &bounds in ClockBounds::SMALL {
        assert_eq!(broken(bounds, None), [""; 0], "{bounds:?}");
    }
}

#[test]
fn a_jump_that_is_believed_is_caught() {
    let window = "no window is over before its time";
    assert!(broken(ONE, Some(ClockMistake::JumpBelieved)).contains(&window));
}

/// The store was stopped for a fortnight; during the hold the clock is set back, a window is stamped, and the hold ends.
#[test]
fn a_latest_time_that_goes_back_during_a_hold_is_caught() {
    let window = "no window is over before its time";
    assert!(broken(ONE, Some(ClockMistake::LatestGoesBack)).contains(&window));
}

#[test]
fn a_clock_far_behind_the_mark_that_is_gone_by_is_caught() {
    let window = "no window is over before its time";
    assert!(broken(ONE, Some(ClockMistake::BehindBelieved)).contains(&window));
}

#[test]
fn a_lease_that_is_judged_by_the_time_alone_is_caught() {
    let lease = "no lease is over before its time";
    assert!(broken(ONE, Some(ClockMistake::NoPatience)).contains(&lease));
}
