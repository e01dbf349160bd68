//! A request that finds a record: each state, the same and different and unclear requests, leases live and over, each policy.

use super::*;

fn in_words(record: &Record, matches: Match, policy: &Policy, now: Timestamp) -> alloc::string::String {
    match arrive(record, &Arrival { matches, owner: SOMEBODY, policy }, now) {
        Arrived::KeyReused => "key reused".into(),
        Arrived::CannotTell => "cannot tell".into(),
        Arrived::Expired => "expired".into(),
        Arrived::InProgress { .. } => "in progress".into(),
        Arrived::Replay => "replay".into(),
        Arrived::NotStored => "not stored".into(),
        Arrived::Unknown => "unknown".into(),
        Arrived::Forgotten => "forgotten".into(),
        Arrived::Doubt(change) => {
            let next = applied(record, change, now).expect("doubt is written");
            assert_eq!(
                (next.state, next.owner, next.attempt),
                (State::Unknown, record.owner, record.attempt)
            );
            "doubt".into()
        }
        Arrived::Take(change) => {
            let next = applied(record, change, now).expect("a takeover is written");
            assert_eq!(
                (next.state, next.owner, next.attempt),
                (State::InProgress, SOMEBODY, record.attempt + 1)
            );
            assert_eq!(next.times.lease, now.plus(policy.lease));
            "take".into()
        }
    }
}

/// One column per moment: the lease runs, the lease is over, the body is over, the window is over, the tombstone is over.
const MOMENTS: [&str; 5] = ["at once", "lease over", "body over", "window over", "tombstone over"];

fn moments() -> [Timestamp; 5] {
    [START, lease_over(), after(600), after(3600), after(3600 + 7200)]
}

#[rustfmt::skip]
const SAME: [(&str, &[&str]); 10] = [
    //                                at once        lease over  body over     window over  tombstone over
    ("in_progress",                  &["in progress", "doubt",    "doubt",      "doubt",     "doubt"]),
    ("in_progress past a point",     &["in progress", "doubt",    "doubt",      "doubt",     "doubt"]),
    ("in_progress, retried",         &["in progress", "doubt",    "doubt",      "doubt",     "doubt"]),
    ("in_progress, took over doubt", &["in progress", "in progress", "doubt",   "doubt",     "doubt"]),
    ("unknown",                      &["unknown",     "unknown",  "unknown",    "unknown",   "unknown"]),
    ("unknown, dead letter",         &["unknown",     "unknown",  "unknown",    "unknown",   "unknown"]),
    ("completed",                    &["replay",      "replay",   "not stored", "expired",   "forgotten"]),
    ("failed_replayable",            &["replay",      "replay",   "not stored", "expired",   "forgotten"]),
    ("failed_retryable",             &["take",        "take",     "take",       "expired",   "forgotten"]),
    ("expired",                      &["expired",     "expired",  "expired",    "expired",   "forgotten"]),
];

/// What another policy makes of a cell.
fn under(cell: &'static str, policy: &Policy) -> &'static str {
    match cell {
        "doubt" if policy.stale != Stale::Unknown => "take",
        "expired" if policy.expired == Expired::New => "forgotten",
        cell => cell,
    }
}

#[test]
fn the_same_request_in_each_state_at_each_moment_under_each_policy() {
    for stale in [Stale::Unknown, Stale::Resume, Stale::Rerun] {
        for expired in [Expired::Refuse, Expired::New] {
            let policy = Policy { stale, expired, ..policy() };
            let cells: Vec<(&str, Vec<&str>)> = SAME
                .iter()
                .map(|(name, cells)| (*name, cells.iter().map(|cell| under(cell, &policy)).collect()))
                .collect();
            let rows: Vec<(&str, &[&str])> =
                cells.iter().map(|(name, row)| (*name, row.as_slice())).collect();
            assert_table(&MOMENTS, &rows, |record, column| {
                in_words(record, Match::Same, &policy, moments()[column])
            });
        }
    }
}

#[test]
fn a_different_request_is_refused_in_every_state_before_anything_else_is_looked_at() {
    for (matches, answer) in [
        (Match::Different, "key reused"),
        (Match::OtherOperation, "key reused"),
        (Match::CannotTell, "cannot tell"),
    ] {
        for stale in [Stale::Unknown, Stale::Resume, Stale::Rerun] {
            for expired in [Expired::Refuse, Expired::New] {
                let policy = Policy { stale, expired, ..policy() };
                for ((name, record), (_, cells)) in every_record().iter().zip(SAME) {
                    for (column, now) in moments().into_iter().enumerate() {
                        // Only what is as good as gone stands for nothing any more, and no other operation's policy makes it so.
                        let expired = match matches {
                            Match::OtherOperation => Expired::Refuse,
                            _ => policy.expired,
                        };
                        let gone = under(cells[column], &Policy { expired, ..policy.clone() }) == "forgotten";
                        let expected = if gone { "forgotten" } else { answer };
                        let said = in_words(record, matches, &policy, now);
                        assert_eq!(said, expected, "{name} × {} × {policy:?}", MOMENTS[column]);
                    }
                }
            }
        }
    }
}

#[test]
fn a_request_is_told_how_long_the_lease_still_runs() {
    let arrived = arriving(&reserved(), &policy(), after(10));
    assert_eq!(arrived, Arrived::InProgress { lease_left: Duration::from_secs(20) });
}

#[test]
fn a_lease_is_over_at_its_last_moment_and_not_before() {
    let last = START.plus(LEASE);
    let before = Timestamp::from_millis(last.as_millis() - 1);
    assert!(matches!(arriving(&reserved(), &policy(), before), Arrived::InProgress { .. }));
    assert!(matches!(arriving(&reserved(), &policy(), last), Arrived::Doubt(_)));
}

#[test]
fn doubt_that_a_request_finds_leaves_the_owner_in_place() {
    let Arrived::Doubt(change) = arriving(&reserved(), &policy(), lease_over()) else { panic!("in doubt") };
    let record = applied(&reserved(), change, lease_over()).unwrap();
    assert_eq!((record.owner, record.attempt, record.last_error.as_deref()), (ME, 1, Some("lease_over")));
    assert_eq!(record.times.reconcile, Some(lease_over().plus(Duration::from_secs(5))));
}

#[test]
fn a_retryable_failure_has_one_winner() {
    // Both decide on the same version; the store lets one of the two writes through.
    let failed = acted(&reserved(), &retryable(), START);
    let (first, second) = (taken(&failed, &policy(), after(1)), taken(&failed, &policy(), after(1)));
    assert_eq!(first.version, second.version);
    assert_eq!((first.attempt, first.origin, first.state), (2, Origin::Retry, State::InProgress));
    assert!(matches!(arriving(&first, &policy(), after(1)), Arrived::InProgress { .. }));
}

#[test]
fn a_takeover_leaves_no_window_behind() {
    let record = taken(&acted(&reserved(), &retryable(), START), &policy(), after(1));
    let times = record.times;
    assert_eq!((times.expires, times.purge, times.body_expires, times.completed), (None, None, None, None));
    assert_eq!(record.last_error, None);
}

#[test]
fn what_was_never_stored_is_not_replayed() {
    for kept in [None, Some(StoredResponse { body: Body::NotStored, ..response("") })] {
        let complete = Act::Complete { response: kept, resource: None, windows: windows() };
        let record = acted(&reserved(), &complete, START);
        assert_eq!(arriving(&record, &policy(), START), Arrived::NotStored);
    }
}

#[test]
fn the_lease_watch_doubts_what_ran_out_and_leaves_the_rest() {
    for stale in [Stale::Unknown, Stale::Resume, Stale::Rerun] {
        let policy = Policy { stale, ..policy() };
        for (name, record) in every_record() {
            for now in moments() {
                let over = record.state == State::InProgress && record.times.lease.has_come(now);
                let expected = match (over, stale) {
                    (false, _) => "NotDue",
                    (true, Stale::Unknown) => "unknown",
                    (true, _) => "LeftToRetry",
                };
                let said = told_in_words(&record, watch(&record, &policy, now), now);
                assert_eq!(said, expected, "{name} × {stale:?}");
            }
        }
    }
}
