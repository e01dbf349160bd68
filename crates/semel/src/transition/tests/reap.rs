//! Retention, body retention, tombstones.

use super::*;
use crate::record::DueKind;

#[test]
fn each_record_at_each_moment() {
    let moments = [START, after(600), after(3600), after(3600 + 7200)];
    let kept: &[&str] = &["NotDue", "NotDue", "NotDue", "NotDue"];
    #[rustfmt::skip]
    let table: [(&str, &[&str]); 10] = [
        //                                at once    body over            window over  tombstone over
        ("in_progress",                  kept),
        ("in_progress past a point",     kept),
        ("in_progress, retried",         kept),
        ("in_progress, took over doubt", kept),
        ("unknown",                      kept),
        ("unknown, dead letter",         kept),
        ("completed",                    &["NotDue", "NotDue",            "NotDue",    "removed"]),
        ("failed_replayable",            &["NotDue", "NotDue",            "NotDue",    "removed"]),
        ("failed_retryable",             &["NotDue", "NotDue",            "NotDue",    "removed"]),
        ("expired",                      &["NotDue", "NotDue",            "NotDue",    "removed"]),
    ];
    let events = ["at once", "body over", "window over", "tombstone over"];
    assert_table(&events, &table, |record, column| {
        told_in_words(record, reap(record, moments[column]), moments[column])
    });
}

/// A completed record, with something in it that is to go when its window is over.
fn checkpointed() -> Record {
    acted(&acted(&reserved(), &advance(), START), &complete(), START)
}

#[test]
fn windows_are_judged_on_every_read_whether_or_not_the_reaper_has_come_by() {
    let completed = checkpointed();
    let reaped = reaped(&completed, after(3600));
    for now in [after(3600), after(9000), after(3600 + 7200)] {
        assert_eq!(standing(&completed, now), standing(&reaped, now));
        assert_eq!(arriving(&completed, &policy(), now), arriving(&reaped, &policy(), now));
        assert_eq!([state_at(&completed, now), state_at(&reaped, now)], [State::Expired; 2]);
    }
}

#[test]
fn a_record_is_in_the_state_that_is_written_until_its_window_is_over() {
    for (name, record) in every_record() {
        assert_eq!(state_at(&record, START), record.state, "{name}");
        let last = Timestamp::from_millis(after(3600).as_millis() - 1);
        assert_eq!(state_at(&record, last), record.state, "{name}");
        let unfinished = matches!(record.state, State::InProgress | State::Unknown);
        let over = if unfinished { record.state } else { State::Expired };
        assert_eq!(state_at(&record, after(3600)), over, "{name}");
        assert_eq!(state_at(&record, Timestamp::from_millis(i64::MAX)), over, "{name}");
    }
}

#[test]
fn a_finished_record_waits_for_its_removal_or_first_for_the_end_of_its_checkpoint() {
    let purge = after(3600 + 7200);
    for act in [complete(), fail(), retryable()] {
        let ended = acted(&reserved(), &act, START);
        assert_eq!(ended.due(), Some((DueKind::Purge, purge)), "{act:?}");
    }
    assert_eq!(checkpointed().due(), Some((DueKind::Window, after(3600))));
    assert_eq!(reaped(&checkpointed(), after(3600)).due(), Some((DueKind::Purge, purge)));
}

/// Stores remove what waits for it without asking again ([`purge`](crate::Store::purge)).
#[test]
fn what_waits_for_its_removal_and_whose_moment_has_come_is_what_the_reaper_removes() {
    for (name, record) in every_record() {
        for now in
            [START, after(3600), after(3600 + 7199), after(3600 + 7200), Timestamp::from_millis(i64::MAX)]
        {
            let purged = record.due().is_some_and(|(kind, at)| kind == DueKind::Purge && at.has_come(now));
            assert_eq!(purged, reap(&record, now) == Ok(Change::Remove), "{name} at {now:?}");
        }
    }
}

#[test]
fn an_answer_ends_with_its_body_or_with_its_window() {
    let completed = acted(&reserved(), &complete(), START);
    assert_eq!(completed.answer_ends(), Some(after(600)));
    let whole = Windows { body_retention: RETENTION, ..windows() };
    let complete = Act::Complete { response: Some(response("done")), resource: None, windows: whole };
    assert_eq!(acted(&reserved(), &complete, START).answer_ends(), Some(after(3600)));
    let unanswered = Act::Complete { response: None, resource: None, windows: windows() };
    assert_eq!(acted(&reserved(), &unanswered, START).answer_ends(), None);
}

#[test]
fn a_window_ends_at_its_last_moment_and_not_before() {
    let completed = acted(&reserved(), &complete(), START);
    for (moment, before, at) in [
        (after(600), Standing::Alive, Standing::BodyOver),
        (after(3600), Standing::BodyOver, Standing::Tombstone),
        (after(3600 + 7200), Standing::Tombstone, Standing::Gone),
    ] {
        assert_eq!(standing(&completed, Timestamp::from_millis(moment.as_millis() - 1)), before);
        assert_eq!(standing(&completed, moment), at);
    }
}

#[test]
fn an_answer_that_is_over_is_not_replayed_whether_or_not_it_was_dropped() {
    let completed = acted(&reserved(), &complete(), START);
    let mut dropped = completed.clone();
    let response = dropped.response.as_mut().expect("it was answered");
    (response.headers, response.body) = (vec![], Body::Dropped);
    for record in [&completed, &dropped] {
        assert_eq!(arriving(record, &policy(), after(600)), Arrived::NotStored);
        assert_eq!(reap(record, after(600)), Err(Refusal::NotDue), "it takes no writing");
        assert_eq!(arriving(record, &policy(), after(3600)), Arrived::Expired);
    }
}

/// A store whose reading comes after the moment that it tells may have dropped the answer in between.
#[test]
fn an_answer_that_went_with_its_window_is_expired_and_never_new_work_by_that_alone() {
    let windows = Windows { body_retention: RETENTION, ..windows() };
    let complete = Act::Complete { response: Some(response("done")), resource: None, windows };
    let mut dropped = acted(&reserved(), &complete, START);
    let kept = dropped.response.as_mut().expect("it was answered");
    (kept.headers, kept.body) = (vec![], Body::Dropped);
    for policy in [policy(), Policy { expired: Expired::New, ..policy() }] {
        assert_eq!(arriving(&dropped, &policy, after(3599)), Arrived::Expired);
    }
    assert_eq!(standing(&dropped, after(3599)), Standing::Alive, "nothing else is judged by it");
    // Well within its window it did not end, it was lost: whoever is told so must not take a new key.
    assert_eq!(arriving(&dropped, &policy(), after(3600 - 61)), Arrived::NotStored);
}

#[test]
fn a_body_that_may_stay_as_long_as_the_record_is_not_dropped_on_its_own() {
    for body_retention in [RETENTION, RETENTION * 2] {
        let windows = Windows { body_retention, ..windows() };
        let complete = Act::Complete { response: Some(response("done")), resource: None, windows };
        let record = acted(&reserved(), &complete, START);
        assert_eq!(record.times.body_expires, None);
        assert_eq!(arriving(&record, &policy(), after(3599)), Arrived::Replay);
    }
}

#[test]
fn a_tombstone_keeps_no_answer_and_no_checkpoint() {
    let tombstone = reaped(&checkpointed(), after(3600));
    assert_eq!((tombstone.state, tombstone.response, tombstone.checkpoint), (State::Expired, None, None));
    assert_eq!(tombstone.times.purge, Some(after(3600 + 7200)));
}

#[test]
fn a_tombstone_that_is_to_last_for_ever_does() {
    let windows = Windows { tombstone: Duration::MAX, ..windows() };
    let complete = Act::Complete { response: Some(response("done")), resource: None, windows };
    let completed = acted(&reserved(), &complete, START);
    let written = reaped(&acted(&acted(&reserved(), &advance(), START), &complete, START), after(3600));
    let end_of_time = Timestamp::from_millis(i64::MAX);
    for tombstone in [completed, written] {
        assert_eq!((tombstone.due(), tombstone.times.purge), (None, None));
        assert_eq!(standing(&tombstone, end_of_time), Standing::Tombstone);
        assert_eq!(arriving(&tombstone, &policy(), end_of_time), Arrived::Expired);
        assert_eq!(reap(&tombstone, end_of_time), Err(Refusal::NotDue));
    }
}

#[test]
fn retention_runs_from_the_final_state_and_not_from_the_first_request() {
    let late = acted(&reserved(), &complete(), after(1_000_000));
    assert_eq!(arriving(&late, &policy(), after(1_000_000 + 599)), Arrived::Replay);
    assert_eq!(arriving(&late, &policy(), after(1_000_000 + 3600)), Arrived::Expired);
}

#[test]
fn a_retryable_failure_expires_too() {
    let failed = acted(&reserved(), &retryable(), START);
    assert_eq!(arriving(&failed, &policy(), after(3600)), Arrived::Expired);
    let new = Policy { expired: Expired::New, ..policy() };
    assert_eq!(arriving(&failed, &new, after(3600)), Arrived::Forgotten);
}
