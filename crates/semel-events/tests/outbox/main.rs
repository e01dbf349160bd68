//! Shows that what was appended is published: nothing lost, in order per aggregate, by any number of publishers that may be killed
//! anywhere; and that one bad event stops its aggregate alone.
//!
//! One suite, on SQLite and on PostgreSQL. Time is the stores' own: tests wait for what has to happen, not for how long it takes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod appending;
mod crashes;
mod dead_letters;
mod delivering;
mod lanes;
mod outages;
mod postgres;
mod receiver;
mod same_transaction;
mod subject;
mod through;
mod webhook;

/// Runs the rules on both stores.
macro_rules! on_both_stores {
    ($($area:ident: $($rule:ident),+ $(,)?;)+) => {
        mod sqlite {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                crate::$area::$rule(crate::subject::Subject::sqlite().await).await;
            })+)+
        }
        mod on_postgres {
            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $rule() {
                crate::$area::$rule(crate::subject::Subject::postgres().await).await;
            })+)+
        }
    };
}

on_both_stores! {
    appending: what_is_rolled_back_is_never_published, an_event_that_no_broker_takes_is_refused, an_id_is_appended_once;
    crashes: what_was_published_and_not_settled_is_published_again,
        a_store_that_fails_between_publishing_and_settling_costs_no_second_delivery;
    dead_letters: a_poison_event_stops_its_aggregate_alone, a_requeued_dead_letter_is_delivered_with_those_behind_it_in_order,
        a_dropped_dead_letter_lets_those_behind_it_go, what_an_operator_does_is_in_the_audit_with_it_and_what_is_not_done_is_not,
        many_events_behind_a_dead_letter_do_not_fill_their_lane,
        an_event_that_alone_does_not_get_through_is_counted_in_the_end, only_what_was_refused_can_be_requeued_or_dropped,
        a_refusal_from_before_it_was_requeued_does_not_count,
        the_outbox_can_be_listed_page_by_page;
    delivering: several_publishers_deliver_everything_in_order, nothing_is_left_of_what_was_published,
        whoever_stops_finishes_what_is_under_way_and_leaves_its_lanes, an_application_can_wake_its_publisher;
    lanes: lanes_are_shared_and_no_two_hold_one, the_lanes_of_one_that_died_go_to_the_others,
        a_publisher_that_lost_its_lane_counts_nothing, what_is_tried_again_counts_towards_the_bytes_of_its_lane,
        one_that_comes_later_gets_its_share;
    outages: a_receiver_that_cannot_be_reached_costs_nothing_but_time, an_outage_is_counted_and_seen;
    same_transaction: payment_event_and_outcome_are_one_commit;
}
