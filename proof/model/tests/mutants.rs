//! A model that cannot fail proves nothing: each deliberate mistake has to be caught, by the property that forbids it.

use semel_model::{Bounds, Config, Mutant, check};

/// As little as it takes.
const FEW: Bounds =
    Bounds { sends: 2, third_sends: 1, crashes: 0, losses: 0, doubles: 0, beats: 0, looks: 0, remarks: 0 };

const P1_EFFECT: &str = "P1 at most one effect";
const P1_START: &str = "P1 no second start without proof";
const P2: &str = "P2 one answer, for as long as its window lasts";
const P3: &str = "P3 one key never stands for two requests";
const P4_DOUBT: &str = "P4 doubt ends by evidence alone";
const P4_TRUTH: &str = "P4 what is recorded is true";
const FENCED: &str = "no write by a fenced owner";

fn caught(mutant: Mutant, config: Config, by: &[&str]) {
    let honest = check(config.clone(), None, |_, _| {});
    assert!(honest.broken.is_empty(), "without the mistake: {:?}", honest.broken);
    let outcome = check(config, Some(mutant), |_, _| {});
    let broken: Vec<_> = outcome.broken.iter().map(|(name, _)| *name).collect();
    assert!(broken.iter().any(|name| by.contains(name)), "{mutant:?} broke {broken:?}, not one of {by:?}");
}

#[test]
fn a_lease_that_is_stolen_is_caught() {
    caught(Mutant::LeaseStolen, Config::doubt(FEW), &[P1_START, P1_EFFECT]);
}

#[test]
fn a_fence_that_is_ignored_is_caught() {
    caught(Mutant::FenceIgnored, Config::resume(FEW), &[FENCED]);
}

#[test]
fn an_attempt_that_releases_the_doubt_it_took_over_is_caught() {
    caught(Mutant::DoubtReleased, Config::resume(FEW), &[P1_START, P1_EFFECT]);
}

#[test]
fn absence_that_counts_while_the_lease_runs_is_caught() {
    caught(Mutant::AbsenceEarly, Config::absence(FEW), &[P4_DOUBT]);
}

#[test]
fn evidence_of_an_earlier_attempt_is_caught() {
    let bounds = Bounds { crashes: 1, looks: 1, third_sends: 0, ..FEW };
    caught(Mutant::EvidenceOfAnotherAttempt, Config::absence(bounds), &[P4_DOUBT, P4_TRUTH]);
}

#[test]
fn evidence_of_an_earlier_operation_is_caught() {
    let bounds = Bounds { looks: 1, third_sends: 0, ..FEW };
    caught(Mutant::EvidenceOfAnotherOperation, Config::expiry_new(bounds), &[P4_DOUBT, P4_TRUTH]);
}

/// An operator looks at attempt 1, which is settled meanwhile; a retry leaves attempt 2 in doubt; the operator says "not executed".
#[test]
fn a_word_without_an_attempt_that_counts_for_the_current_one_is_caught() {
    let bounds = Bounds { crashes: 1, looks: 1, third_sends: 0, ..FEW };
    caught(Mutant::AttemptDefaulted, Config::absence(bounds), &[P4_DOUBT, P4_TRUTH]);
}

/// The same by a message: delivered for attempt 1, and again when attempt 2 is in doubt.
#[test]
fn a_message_without_an_attempt_that_counts_for_the_current_one_is_caught() {
    let bounds = Bounds { third_sends: 0, ..FEW };
    caught(Mutant::AttemptDefaulted, Config::absence(bounds), &[P4_DOUBT, P4_TRUTH]);
}

/// "Completed" was about an operation whose window is over; the key stands for another one by now.
#[test]
fn a_message_by_key_that_settles_whatever_operation_is_there_is_caught() {
    let bounds = Bounds { third_sends: 0, ..FEW };
    caught(Mutant::KeyTakenForOperation, Config::expiry_new(bounds), &[P4_DOUBT, P4_TRUTH]);
}

/// A proxy's own 404 answers the poll while the first call is still on its way.
#[test]
fn a_strangers_word_that_nothing_is_known_is_caught_if_it_is_believed() {
    caught(Mutant::AnyAbsenceBelieved, Config::absence(FEW), &[P1_EFFECT, P4_TRUTH]);
}

/// What the provider said about attempt 1 comes from a cache as the answer about attempt 2.
#[test]
fn an_answer_about_an_earlier_attempt_is_caught_if_it_is_believed() {
    let bounds = Bounds { third_sends: 0, ..FEW };
    caught(Mutant::EchoIgnored, Config::absence(bounds), &[P1_EFFECT, P4_TRUTH]);
}

#[test]
fn a_mismatch_that_is_seen_too_late_is_caught() {
    caught(Mutant::MismatchLate, Config::doubt(FEW), &[P3]);
}

#[test]
fn a_tombstone_that_is_ignored_is_caught() {
    caught(Mutant::TombstoneIgnored, Config::expiry_refused(FEW), &[P1_EFFECT, P3]);
}

#[test]
fn a_settler_that_does_not_fence_the_owner_is_caught() {
    caught(Mutant::SettlerUnfenced, Config::doubt(FEW), &[P2]);
}

#[test]
fn a_read_back_without_a_look_at_the_token_is_caught() {
    let bounds = Bounds { losses: 1, ..FEW };
    caught(Mutant::ReadBackBlind, Config::doubt(bounds), &[P1_EFFECT, FENCED, P3]);
}

#[test]
fn work_that_is_begun_in_doubt_after_a_read_back_is_caught() {
    let bounds = Bounds { losses: 1, looks: 1, third_sends: 0, ..FEW };
    caught(Mutant::DoubtBegun, Config::doubt(bounds), &[P1_EFFECT, P4_TRUTH]);
}

#[test]
fn a_lost_answer_that_is_guessed_is_caught() {
    let bounds = Bounds { losses: 1, ..FEW };
    caught(Mutant::LossGuessed, Config::doubt(bounds), &[P1_EFFECT, P3]);
}

#[test]
fn a_second_answer_that_is_taken_for_another_is_caught() {
    let bounds = Bounds { doubles: 1, third_sends: 0, ..FEW };
    caught(Mutant::DoubleBelieved, Config::doubt(bounds), &[P2]);
}

#[test]
fn a_reaper_that_clears_away_doubt_is_caught() {
    caught(Mutant::DoubtReaped, Config::expiry_refused(FEW), &[P4_DOUBT]);
}

#[test]
fn a_release_past_a_recovery_point_is_caught() {
    caught(Mutant::PointReleased, Config::resume(FEW), &[P1_START, P1_EFFECT]);
}

#[test]
fn a_phase_that_is_committed_twice_is_caught() {
    let bounds = Bounds { losses: 1, third_sends: 0, ..FEW };
    caught(Mutant::PhaseRepeated, Config::resume(bounds), &[P1_EFFECT]);
}
