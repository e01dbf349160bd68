//! Retention, body retention, tombstones.

use super::*;

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
        ("completed",                    &["NotDue", "completed",         "expired",   "removed"]),
        ("failed_replayable",            &["NotDue", "failed_replayable", "expired",   "removed"]),
        ("failed_retryable",             &["NotDue", "NotDue",            "expired",   "removed"]),
        ("expired",                      &["NotDue", "NotDue",            "NotDue",    "removed"]),
    ];
    let events = ["at once", "body over", "window over", "tombstone over"];
    assert_table(&events, &table, |record, column| {
        told_in_words(record, reap(record, moments[column]), moments[column])
    });
}

#[test]
fn windows_are_judged_on_every_read_whether_or_not_the_reaper_has_come_by() {
    let completed = acted(&reserved(), &complete(), START);
    let reaped = reaped(&completed, after(3600));
    for now in [after(3600), after(9000), after(3600 + 7200)] {
        assert_eq!(standing(&completed, now), standing(&reaped, now));
        assert_eq!(arriving(&completed, &policy(), now), arriving(&reaped, &policy(), now));
    }
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
fn the_body_goes_first_and_the_rest_of_the_answer_stays() {
    let completed = acted(&reserved(), &complete(), START);
    let dropped = reaped(&completed, after(600));
    let response = dropped.response.as_ref().expect("the answer stays");
    assert_eq!((response.status, &response.body), (201, &Body::Dropped));
    assert_eq!((dropped.state, dropped.times.body_expires), (State::Completed, None));
    assert_eq!(dropped.times.expires, completed.times.expires, "the window is the same");
    assert_eq!(arriving(&dropped, &policy(), after(600)), Arrived::NotStored);
    assert_eq!(reap(&dropped, after(601)), Err(Refusal::NotDue), "once");
    assert_eq!(reaped(&dropped, after(3600)).state, State::Expired);
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
    let pointed = acted(&reserved(), &advance(), START);
    let tombstone = reaped(&acted(&pointed, &complete(), START), after(3600));
    assert_eq!((tombstone.state, tombstone.response, tombstone.checkpoint), (State::Expired, None, None));
    assert_eq!(tombstone.times.purge, Some(after(3600 + 7200)));
}

#[test]
fn a_tombstone_that_is_to_last_for_ever_does() {
    let windows = Windows { tombstone: Duration::MAX, ..windows() };
    let complete = Act::Complete { response: Some(response("done")), resource: None, windows };
    let tombstone = reaped(&acted(&reserved(), &complete, START), after(3600));
    let end_of_time = Timestamp::from_millis(i64::MAX);
    assert_eq!((tombstone.due(), tombstone.times.purge), (None, None));
    assert_eq!(standing(&tombstone, end_of_time), Standing::Tombstone);
    assert_eq!(arriving(&tombstone, &policy(), end_of_time), Arrived::Expired);
    assert_eq!(reap(&tombstone, end_of_time), Err(Refusal::NotDue));
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
