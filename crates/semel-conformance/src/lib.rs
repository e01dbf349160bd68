//! The contract that every store must pass.
//!
//! A store's own test file says how to make one ([`Subject`]) and calls [`suite!`]; each rule then shows up in the test runner
//! under its own name. A store that lacks something a rule needs states its reason, which is printed.
//!
//! ```no_run
//! use semel::{ManualClock, MemoryStore, Store, Timestamp};
//! use semel_conformance::{Hands, Lacking, Subject};
//! use std::sync::Arc;
//!
//! struct Memory(MemoryStore);
//!
//! impl Subject for Memory {
//!     async fn fresh() -> Self {
//!         Self(MemoryStore::new())
//!     }
//!     fn store(&self) -> Arc<dyn Store> {
//!         Arc::new(self.0.clone())
//!     }
//!     async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
//!         Err(Lacking("its data is in one process"))
//!     }
//!     async fn reopened(self) -> Result<Self, Lacking> {
//!         Err(Lacking("it is not durable"))
//!     }
//!     fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
//!         Err(Lacking("it runs on the machine's clock"))
//!     }
//! }
//!
//! semel_conformance::suite!(Memory);
//! ```
//!
//! Rules use a [`Client`], which does what the engine does: ask, decide with [`semel::transition`], write on
//! condition, and decide again on what came back. [`LossyStore`] loses answers; [`kill`] holds what the test of a durable store
//! needs that kills processes.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "the kit is test code: a store that breaks a rule, or does not answer, fails the test by a panic"
)]

mod bench;
mod client;
mod damage;
pub mod kill;
mod lossy;
pub mod rules;
pub mod samples;
mod sealing;
mod subject;

pub use bench::{Bench, Checked, Rule, check};
pub use client::{Came, Client, Request, Ticket};
pub use damage::{
    an_answer_that_changed_by_accident_is_damage, listings_pass_over_damaged_records,
    only_what_is_over_in_every_respect_is_purged, what_is_due_is_found_behind_damaged_records,
    writes_go_on_around_a_damaged_record,
};
pub use lossy::{Loss, LossyStore};
pub use sealing::{CANARY, Tampering, sealing_keys, what_is_sealed_stands_no_tampering};
pub use subject::{Hands, Lacking, Subject};

/// One test per rule, for this [`Subject`]. The list of rules lives here and nowhere else.
#[macro_export]
macro_rules! suite {
    ($subject:ty) => {
        $crate::tests_of! {
            ($subject)
            reserve {
                the_first_request_executes_as_the_owner,
                what_was_drafted_is_what_is_read,
                a_second_create_is_told_what_is_there_and_writes_nothing,
                a_key_that_nobody_used_is_not_there,
                another_tenants_same_key_is_a_fresh_operation_and_never_sees_the_others_bytes,
                another_operations_same_key_is_a_fresh_operation,
                names_that_read_the_same_when_joined_are_different_keys,
                keys_are_compared_byte_by_byte,
                a_long_key_is_kept_whole,
                a_different_payload_is_refused_in_every_state,
                a_released_key_is_as_if_never_seen,
            }
            races {
                of_many_creates_of_one_key_exactly_one_wins,
                of_many_creates_over_two_instances_exactly_one_wins,
                of_many_swaps_of_one_version_exactly_one_wins,
                of_many_swaps_over_two_instances_exactly_one_wins,
                of_many_removals_exactly_one_is_done,
                of_many_first_requests_one_executes_and_the_others_are_told_in_progress,
                of_many_retries_of_a_retryable_failure_one_executes,
                of_many_takeovers_of_a_lease_that_ran_out_one_executes,
                of_many_requests_that_find_the_lease_over_none_executes_and_doubt_is_told_once,
                of_many_reconcilers_one_asks,
                a_settlement_and_a_late_owner_race_and_one_of_them_has_the_word,
                a_completion_gets_through_a_crowd_of_heartbeats,
                a_release_among_requests_lets_at_most_one_execute,
            }
            fencing {
                a_swap_of_an_old_version_changes_nothing_and_is_told_what_is_there,
                a_swap_of_a_version_to_come_changes_nothing,
                a_swap_of_an_operation_that_came_before_changes_nothing,
                a_swap_of_what_is_not_there_is_told_so,
                a_swap_that_would_make_another_operation_of_it_is_refused,
                a_removal_of_an_old_version_changes_nothing,
                a_swap_lost_to_a_heartbeat_is_decided_again_on_what_came_back,
                an_owner_may_finish_after_its_lease_ran_out,
                an_owner_may_finish_what_has_become_unknown,
                an_owner_in_doubt_may_do_nothing_but_finish,
                an_owner_that_was_taken_over_changes_nothing_any_more,
                an_owner_changes_nothing_after_the_outcome_was_settled,
                an_owner_changes_nothing_after_a_retry_took_its_failure,
                a_last_word_is_said_once,
                an_owner_of_a_removed_record_is_fenced,
            }
            leases {
                a_lease_counts_from_the_stores_now,
                while_the_lease_runs_a_duplicate_is_told_in_progress_and_how_long,
                a_heartbeat_moves_the_end_of_the_lease_and_nothing_else,
                a_request_that_finds_the_lease_over_is_told_unknown,
                the_lease_watch_finds_an_owner_that_gave_no_sign_of_life,
                the_lease_watch_leaves_a_running_lease_alone,
                a_takeover_goes_on_after_the_last_recovery_point,
                the_lease_watch_leaves_what_can_be_resumed_to_a_retry,
                a_finished_operation_has_no_lease_to_run_out,
                what_is_in_progress_never_expires,
            }
            retry {
                a_retry_executes_as_a_new_owner_of_the_same_operation,
                a_later_attempt_that_is_released_goes_back_to_retryable,
                an_attempt_that_took_over_doubt_never_ends_in_released_or_retryable,
                past_a_recovery_point_nothing_is_made_unseen,
                a_retryable_failure_expires_like_any_other_end,
            }
            unknown {
                a_request_that_finds_doubt_does_not_execute,
                doubt_never_expires,
                doubt_that_nothing_automatic_settles_is_a_dead_letter_at_once,
                questions_are_counted_and_end_in_a_dead_letter,
                nobody_asks_before_the_time,
                evidence_of_success_is_what_retries_get,
                evidence_of_failure_is_what_retries_get,
                evidence_without_an_answer_leaves_none_to_replay,
                evidence_that_nothing_happened_lets_one_retry_execute,
                absence_proves_nothing_while_the_lease_runs_or_for_another_attempt,
                absence_proves_once_the_lease_is_over,
                evidence_without_an_attempt_counts_only_if_it_happened,
                evidence_moves_nothing_but_doubt_and_is_kept_in_the_history,
                an_outcome_is_settled_once,
            }
            replay {
                a_retry_gets_the_status_headers_and_bytes_of_the_first,
                a_retry_gets_the_stored_failure,
                a_replay_is_the_same_however_often_it_is_asked_for,
                another_instance_replays_the_same,
                every_byte_of_a_body_comes_back,
                a_body_of_a_mebibyte_comes_back_whole,
                an_empty_body_is_a_body,
                a_body_that_was_not_stored_is_not_an_empty_one,
                no_answer_at_all_is_not_an_answer_without_a_body,
                header_values_come_back_byte_by_byte_in_order,
                status_schema_version_and_resource_come_back,
            }
            fidelity {
                every_state_comes_back,
                every_origin_comes_back,
                hashes_and_tokens_come_back_whatever_their_bytes,
                counters_come_back_to_their_edges,
                points_checkpoints_and_errors_come_back,
                moments_come_back_to_their_edges,
                moments_that_are_not_set_stay_so,
                a_duration_beyond_the_end_of_time_ends_there,
                a_field_that_is_cleared_is_cleared,
                a_record_without_its_body_is_not_written,
            }
            expiry {
                windows_count_from_the_final_state,
                a_key_is_refused_as_expired_before_the_reaper_comes,
                within_its_window_nothing_is_reaped,
                an_answer_may_be_over_before_its_window,
                a_window_that_is_over_is_read_off_the_time_and_the_record_goes_in_the_end,
                the_reaper_leaves_a_tombstone_where_there_is_a_checkpoint,
                a_tombstone_refuses_for_as_long_as_it_stands,
                a_tombstone_for_ever_is_never_due,
                where_the_policy_says_so_an_expired_key_is_new_work,
                a_tombstone_whose_time_is_over_is_as_if_never_seen,
            }
            answers {
                what_is_over_is_dropped_and_nothing_else_changes,
                nothing_is_dropped_before_its_time,
                no_more_are_dropped_than_asked_for_and_those_first_that_ended_first,
                an_answer_that_is_spelt_anew_is_the_one_that_is_read,
                an_answer_without_anything_to_drop_takes_the_place_of_one_that_has,
                a_dropped_answer_is_not_in_anybodys_way,
                whoever_comes_after_a_removed_record_gets_nothing_of_its_answer,
                several_who_drop_at_once_drop_each_answer_once,
            }
            purging {
                what_is_over_is_removed_with_its_history_and_nothing_else,
                what_has_not_ended_is_never_removed_however_old,
                no_more_are_removed_than_asked_for_and_those_first_that_are_over_for_longest,
                a_record_that_is_taken_up_again_is_not_removed,
                a_key_that_was_purged_is_as_if_never_seen,
                several_who_purge_at_once_remove_each_record_once,
            }
            batches {
                an_empty_batch_is_answered_with_the_time,
                a_large_batch_is_answered_item_by_item_in_order,
                a_create_that_loses_leaves_the_others_done,
                a_swap_that_loses_leaves_the_others_done,
                a_removal_that_loses_leaves_the_others_done,
                of_two_creates_of_one_key_in_one_batch_one_wins,
                of_two_swaps_of_one_record_in_one_batch_one_is_done,
                of_two_removals_of_one_record_in_one_batch_one_is_done,
                one_read_may_name_a_key_twice,
                batches_in_opposite_orders_end_and_each_key_has_one_winner,
                batches_in_opposite_orders_over_two_instances_end_and_each_key_has_one_winner,
                a_store_works_on_one_batch_at_least,
            }
            clock {
                time_never_goes_back_from_call_to_call,
                time_never_goes_back_from_instance_to_instance,
                time_never_goes_back_between_tasks,
                time_goes_on,
                moments_count_from_the_time_that_is_told,
                all_items_of_a_batch_count_from_the_same_time,
                a_moment_far_off_in_a_record_does_not_move_the_clock,
                a_clock_that_is_set_back_stands_still_for_the_store,
                a_clock_that_leaps_ahead_causes_doubt_and_never_an_execution,
            }
            holds {
                a_jump_ahead_gives_two_times_and_the_earliest_goes_on,
                what_is_over_by_a_jump_alone_is_replayed_and_nothing_is_purged_or_dropped,
                during_a_hold_windows_are_stamped_late_and_leases_early,
                during_a_hold_quotas_are_counted_by_the_latest_time,
                a_clock_that_comes_back_ends_the_hold,
                the_latest_time_does_not_go_back_with_the_clock_during_a_hold,
                an_accepted_hold_ends_windows_and_no_lease_by_the_jump,
                every_instance_sees_the_hold,
                a_start_with_a_wrong_clock_forgets_nothing,
                a_start_with_a_clock_far_behind_the_mark_serves_nothing_until_it_is_right,
                a_hold_outlives_a_restart,
                a_store_that_was_stopped_for_weeks_serves_at_once,
                after_a_start_no_lease_is_over_before_a_whole_one_has_passed,
            }
            history {
                a_line_bears_the_time_and_the_version_of_its_change,
                history_is_told_oldest_first,
                a_swap_without_a_line_adds_none,
                the_plain_happy_path_has_no_history,
                every_happening_and_every_actor_comes_back,
                history_goes_with_its_record,
                a_removal_that_loses_leaves_the_history,
                only_the_swap_that_was_done_tells_its_story,
                histories_do_not_mix,
                another_instance_tells_the_same_history,
            }
            find {
                a_record_is_found_by_its_operation_id_with_its_body,
                an_id_that_nobody_has_finds_nothing,
                what_is_found_is_the_record_as_it_is_now,
                another_instance_reads_and_finds_what_was_just_written,
            }
            audit {
                an_entry_and_its_change_are_one_commit,
                every_field_of_an_entry_comes_back,
                the_newest_entry_comes_first_and_pages_are_together_complete,
                every_filter_of_the_audit_lets_through_what_it_says_and_nothing_else,
                entries_outlive_the_record_that_they_are_about,
                only_old_entries_are_purged_and_the_oldest_first,
                during_a_hold_no_entry_is_purged,
                another_instance_reads_the_same_audit,
                what_was_acknowledged_of_the_audit_is_there_after_a_restart,
                a_cursor_from_elsewhere_is_refused,
            }
            listing {
                an_empty_store_lists_nothing,
                the_newest_comes_first,
                a_change_does_not_move_a_record,
                pages_are_bounded_and_together_complete,
                records_made_in_one_batch_all_get_a_place,
                a_cursor_that_the_store_did_not_make_is_refused,
                paging_misses_and_repeats_nothing_while_records_come_change_and_go,
                every_filter_lets_through_what_it_says_and_nothing_else,
                a_record_is_listed_under_the_state_that_it_has_now,
                a_record_whose_window_is_over_is_listed_as_expired,
                a_listing_can_begin_with_the_oldest,
                a_listing_can_be_of_what_was_created_between_two_moments,
                a_listing_leaves_bodies_out_and_everything_else_in,
                another_instance_lists_the_same,
            }
            due {
                each_kind_is_due_under_its_own_name_alone,
                nothing_is_due_before_its_time,
                what_is_due_is_judged_by_the_time_that_is_told,
                what_is_due_comes_in_the_order_of_time_then_of_ids,
                a_caller_is_given_no_more_than_it_asks_for_and_goes_on_from_there,
                what_a_caller_leaves_be_can_be_passed_over,
                a_record_that_was_seen_to_waits_for_the_next_thing,
                a_finished_record_waits_for_its_removal_alone,
                a_dead_letter_waits_for_nothing,
                what_is_due_comes_without_bodies_and_otherwise_whole,
            }
            counting {
                keys_are_counted_for_their_tenant_until_they_expire,
                a_count_goes_no_further_than_it_is_asked_for,
                another_instance_counts_the_same,
                live_keys_are_counted_by_operation_and_scope,
                no_more_records_are_looked_at_than_asked_for_and_the_newest_first,
            }
            scopes {
                a_key_across_operations_has_one_record_which_keeps_its_operation,
                keys_of_the_two_scopes_never_meet,
                of_many_operations_at_once_under_one_key_exactly_one_executes,
                of_many_operations_over_two_instances_under_one_key_exactly_one_executes,
                another_operation_is_refused_for_as_long_as_the_tombstone_stands,
                an_operation_is_listed_by_its_name_in_either_scope,
                what_is_purged_is_told_by_its_operations_name,
                a_key_across_operations_is_respelt_as_one,
            }
            remembering {
                nothing_is_recalled_that_was_not_remembered,
                the_first_value_stays,
                values_are_kept_byte_by_byte_under_their_own_names,
                of_many_that_remember_at_once_all_agree,
                of_many_that_remember_over_two_instances_all_agree,
            }
            key_format {
                a_value_is_replaced_if_it_is_the_expected_one,
                a_store_that_was_never_used_takes_sealed_keys_and_refuses_plain_ones,
                a_store_that_was_used_keeps_its_format,
                of_many_that_seal_and_reserve_at_once_all_have_one_format,
                records_are_respelt_with_all_that_belongs_to_them_and_back_again,
                nothing_is_respelt_while_an_operation_is_under_way_or_if_one_cannot_be,
            }
            lost_acknowledgement {
                a_reservation_whose_answer_is_lost_is_found_to_be_ours,
                a_reservation_that_lost_to_another_is_not_taken_for_ours,
                a_completion_whose_answer_is_lost_is_done_once,
                every_act_of_an_owner_survives_a_lost_answer,
                a_retry_whose_answer_is_lost_is_found_to_be_ours,
                a_takeover_whose_answer_is_lost_is_found_to_be_ours,
                a_settlement_whose_answer_is_lost_is_done_once,
                a_settlement_that_came_second_is_not_taken_for_done,
                a_question_whose_answer_is_lost_counts_as_asked,
                a_secret_whose_answer_is_lost_is_asked_for_again,
                a_call_that_is_dropped_midway_is_done_whole_or_not_at_all,
            }
            reopen_after_kill {
                every_acknowledged_record_is_there_and_unchanged,
                what_was_completed_is_replayed,
                what_was_in_progress_is_in_progress_then_unknown_and_never_executes,
                an_owner_goes_on_with_its_token,
                whoever_was_fenced_stays_fenced,
                what_was_removed_stays_away,
                time_does_not_go_back_over_a_restart,
                new_records_come_before_the_old_ones_in_a_listing,
                what_was_remembered_is_recalled,
                many_changes_of_one_record_leave_the_last,
            }
            random_histories {
                a_store_agrees_with_the_state_machine,
                two_instances_agree_with_the_state_machine_and_with_each_other,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests_of {
    (($subject:ty) $($area:ident { $($rule:ident,)* })*) => {
        $(
            mod $area {
                #[allow(unused_imports, reason = "the subject is named as its own file names it")]
                use super::*;

                $(
                    #[test]
                    fn $rule() {
                        $crate::check::<$subject>(stringify!($area), stringify!($rule), |bench| {
                            ::std::boxed::Box::pin($crate::rules::$area::$rule(bench))
                        });
                    }
                )*
            }
        )*
    };
}

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    /// A rule that is written but not listed would hold for no store.
    #[test]
    fn every_rule_is_in_the_suite() {
        let list = include_str!("lib.rs");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        let mut rules = 0;
        for file in std::fs::read_dir(source).expect("the rules are there") {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("text");
            for line in text.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let name = line.split('(').next().unwrap_or_default();
                assert!(list.contains(&format!(" {name},\n")), "{name} of {} is not listed", path.display());
                rules += 1;
            }
        }
        assert!(rules > 100, "only {rules} rules found");
    }
}
