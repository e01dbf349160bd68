//! Which check catches which bug. The compiler sees to it that none is left out.

use super::bug::Bug;
use std::fmt;

/// A test, by the place of its program and its name there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Test {
    pub(crate) place: &'static str,
    pub(crate) name: &'static str,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.name)
    }
}

/// What is expected to notice a bug: every one of the tests does, and so does the campaign that `pairs.rs` has for it.
#[derive(Clone, Copy)]
pub(crate) struct Checks {
    pub(crate) tests: &'static [Test],
}

const fn test(place: &'static str, name: &'static str) -> Test {
    Test { place, name }
}

const fn rule(name: &'static str) -> Test {
    test("crates/semel/src", name)
}

const fn engine(name: &'static str) -> Test {
    test("crates/semel/tests/engine", name)
}

const fn layer(name: &'static str) -> Test {
    test("crates/semel-tower/tests/http", name)
}

const fn store(name: &'static str) -> Test {
    test("crates/semel-sqlite/tests/conformance", name)
}

const fn gateway(name: &'static str) -> Test {
    test("crates/semel-gateway/tests/proxy", name)
}

const fn worker(name: &'static str) -> Test {
    test("crates/semel-worker/tests/worker", name)
}

const MODEL: Test =
    test("proof/model/tests/small", "everything_holds_at_the_small_bound_and_everything_is_reached");

macro_rules! by {
    ($($test:expr),+ $(,)?) => {
        Checks { tests: const { &[$($test),+] } }
    };
}

/// What catches this bug. The quickest test stands first.
pub(crate) fn checks(bug: Bug) -> Checks {
    match bug {
        Bug::LeaseStolen => by![
            rule(
                "transition::tests::arrive::the_same_request_in_each_state_at_each_moment_under_each_policy"
            ),
            store("leases::a_request_that_finds_the_lease_over_is_told_unknown"),
            MODEL,
        ],
        Bug::CompleteUnfenced => by![
            engine("owners::an_owner_that_was_taken_over_is_refused_everything"),
            rule(
                "transition::tests::owner::whoever_cannot_name_operation_attempt_and_owner_is_fenced_in_every_state"
            ),
            MODEL,
        ],
        Bug::ReleaseUnfenced => by![
            store("fencing::an_owner_changes_nothing_after_a_retry_took_its_failure"),
            rule(
                "transition::tests::owner::whoever_cannot_name_operation_attempt_and_owner_is_fenced_in_every_state"
            ),
            MODEL,
        ],
        Bug::ExtendUnfenced => by![
            rule(
                "transition::tests::owner::whoever_cannot_name_operation_attempt_and_owner_is_fenced_in_every_state"
            ),
            store("fencing::an_owner_that_was_taken_over_changes_nothing_any_more"),
            test("proof/model/tests/small", "heartbeats_change_nothing_whoever_sends_them"),
        ],
        Bug::DoubtReleased => by![
            rule(
                "transition::tests::owner::an_attempt_that_took_over_doubt_ends_in_completed_failed_or_unknown"
            ),
            engine("recovery::an_attempt_that_took_over_doubt_ends_unknown_if_it_says_that_nothing_happened"),
            MODEL,
        ],
        Bug::PointReleased => {
            by![rule("transition::tests::owner::a_release_after_a_recovery_point_is_refused"), MODEL,]
        }
        Bug::PhaseRepeated => {
            by![rule("transition::tests::owner::a_recovery_point_is_committed_once"), MODEL]
        }
        Bug::TombstoneIgnored => by![
            engine("windows::a_key_is_replayed_to_the_last_moment_of_its_window_then_refused_then_forgotten"),
            store("expiry::a_tombstone_refuses_for_as_long_as_it_stands"),
            MODEL,
        ],
        Bug::WindowLeftToReaper => by![
            rule(
                "transition::tests::reap::windows_are_judged_on_every_read_whether_or_not_the_reaper_has_come_by"
            ),
            layer("windows::an_expired_key_is_refused_and_once_forgotten_it_is_new"),
        ],
        Bug::AbsenceEarly => by![
            rule("transition::tests::settle::absence_counts_only_once_the_lease_is_over"),
            worker("asking::no_trace_of_it_proves_nothing_while_the_lease_runs"),
            MODEL,
        ],
        Bug::EarlierAttempt => by![
            rule(
                "transition::tests::settle::evidence_that_took_time_counts_for_the_attempt_that_was_looked_into"
            ),
            worker("asking::what_is_heard_of_one_attempt_says_nothing_of_the_next"),
            MODEL,
        ],
        Bug::SettlerUnfenced => by![
            engine("owners::an_owner_whose_operation_was_settled_is_refused_and_told_what_is_there"),
            worker("asking::an_owner_that_comes_after_the_bank_is_refused"),
            MODEL,
        ],
        Bug::MismatchAfterInFlight => by![
            rule(
                "transition::tests::arrive::a_different_request_is_refused_in_every_state_before_anything_else_is_looked_at"
            ),
            layer("scope::a_different_request_under_the_same_key_is_refused_in_every_state"),
            MODEL,
        ],
        Bug::FingerprintIgnored => by![
            engine("recipes::a_different_request_is_refused_whatever_the_state"),
            layer("scope::a_different_request_under_the_same_key_is_refused_in_every_state"),
        ],
        Bug::AmountsRounded => {
            by![rule("canonical::tests::two_amounts_are_never_rounded_into_each_other")]
        }
        Bug::TokenIgnored => by![engine("lost_answers::somebody_elses_reservation_is_not_taken_for_ours"),],
        Bug::WaiterBecomesOwner => by![engine("waiters::a_waiter_never_becomes_an_owner")],
        Bug::SecretPerInstance => by![layer("scope::a_restart_knows_the_same_tenants_again")],
        Bug::DroppedTicketReleased => by![
            engine("finishing::a_dropped_ticket_is_unknown_and_never_released"),
            engine("finishing::a_panicking_owner_is_unknown"),
        ],
        Bug::AtMostOnceRepeated => by![engine(
            "phases::crashes::whoever_takes_over_goes_on_after_the_last_recovery_point_and_treats_a_sent_call_as_promised"
        ),],
        Bug::TagNotChecked => by![
            rule("seal::envelope::tests::no_bit_can_be_flipped_and_nothing_cut_off_or_added"),
            test(
                "crates/semel-sqlite/tests/sqlite",
                "sealing::what_is_sealed_stands_no_tampering_with_the_file_and_leaves_nothing_readable_in_it",
            ),
        ],
        Bug::SealUnbound => by![
            rule("seal::tests::what_is_sealed_for_one_record_opens_in_no_other"),
            test(
                "crates/semel-sqlite/tests/sqlite",
                "sealing::what_is_sealed_stands_no_tampering_with_the_file_and_leaves_nothing_readable_in_it",
            ),
        ],
        Bug::NoUniqueKey => by![
            store("races::of_many_creates_of_one_key_exactly_one_wins"),
            layer("races::two_instances_on_one_file_execute_once"),
        ],
        Bug::SumIgnored => by![test(
            "crates/semel-sqlite/tests/sqlite",
            "damage::an_answer_that_is_not_what_was_written_is_never_replayed",
        ),],
        Bug::TransactionLeftOpen => by![test(
            "crates/semel-postgres/tests/postgres",
            "open_transactions::what_is_written_after_somebody_gave_up_on_a_transaction_is_committed",
        ),],
        Bug::SwapUnconditional => by![store("races::of_many_swaps_of_one_version_exactly_one_wins")],
        Bug::AcknowledgedBeforeCommit => by![
            store("find::another_instance_reads_and_finds_what_was_just_written"),
            test(
                "crates/semel-sqlite/tests/reopen_after_kill",
                "nothing_acknowledged_is_lost_and_nothing_executes_twice_over_a_hundred_kills",
            ),
        ],
        Bug::LocalClock => by![
            test(
                "crates/semel-sqlite/tests/sqlite",
                "clock::a_leap_ahead_is_not_followed_and_nothing_falls_due_by_it"
            ),
            test(
                "crates/semel-cli/tests/settling",
                "clocks::a_worker_that_is_five_minutes_slow_changes_nothing"
            ),
        ],
        Bug::ClockBelieved => by![
            store("holds::a_start_with_a_wrong_clock_forgets_nothing"),
            test(
                "crates/semel-sqlite/tests/sqlite",
                "clock::one_start_with_a_wrong_clock_purges_nothing_and_leaves_the_time_alone",
            ),
        ],
        Bug::FailOpen => {
            by![layer("store_failing::a_store_that_hangs_means_503_in_bounded_time_and_no_execution"),]
        }
        Bug::AnsweredBeforeStored => by![layer(
            "store_failing::an_outcome_that_cannot_be_stored_is_504_and_stored_once_the_store_is_back"
        ),],
        Bug::RequestsOwnTask => by![
            layer("hanging_up::a_client_that_hangs_up_in_mid_handler_finds_the_answer_when_it_comes_back"),
            gateway("http2_clients::a_client_that_resets_its_stream_cancels_nothing"),
        ],
        Bug::CookieKept => {
            by![layer("replay::safe_headers_are_replayed_and_others_go_to_the_first_client_alone")]
        }
        Bug::HeaderLost => by![
            layer("replay::safe_headers_are_replayed_and_others_go_to_the_first_client_alone"),
            gateway("outcomes::every_final_status_is_replayed_byte_for_byte"),
        ],
        Bug::TenantLeftOut => {
            by![layer("scope::another_tenants_same_key_is_a_fresh_operation_and_never_sees_the_others_bytes"),]
        }
        Bug::BrokenCallRetryable => {
            by![gateway("reaching::a_service_killed_in_the_middle_leaves_doubt_and_is_never_asked_again"),]
        }
        Bug::StaleConnectionNotSent => {
            by![gateway("reaching::what_breaks_off_on_a_kept_connection_leaves_doubt_too"),]
        }
        Bug::StrangerBelieved => by![test(
            "crates/semel-gateway/src",
            "scope::tests::a_header_is_believed_from_trusted_peers_alone"
        ),],
        Bug::ReconcilerUnclaimed => by![
            worker("several::in_memory_each_question_is_asked_once"),
            worker("asking::nobody_else_asks_while_a_question_is_out"),
        ],
        Bug::WebhookIdIgnored => {
            by![worker("webhooks::a_signed_word_settles_and_comes_any_number_of_times"),]
        }
        Bug::PublisherSkipsLate => by![test(
            "crates/semel-events/tests/outbox",
            "postgres::a_transaction_that_commits_late_is_not_skipped"
        ),],
        Bug::InboxMarksFirst => by![test(
            "crates/semel-events/tests/inbox",
            "on_postgres::an_effect_that_fails_leaves_neither_rows_nor_a_mark"
        ),],
    }
}
