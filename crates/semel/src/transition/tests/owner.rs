//! Owners, late owners, release, takeover of doubt.

use super::*;

#[test]
fn each_act_of_the_owner_in_each_state() {
    let acts = all_acts();
    let names: Vec<_> = acts.iter().map(|(name, _)| *name).collect();
    #[rustfmt::skip]
    let table: [(&str, &[&str]); 10] = [
        //                                extend         advance        complete     fail                 retryable           release              doubt
        ("in_progress",                  &["in_progress", "in_progress", "completed", "failed_replayable", "failed_retryable", "removed",           "unknown"]),
        ("in_progress past a point",     &["in_progress", "AlreadyAdvanced", "completed", "failed_replayable", "failed_retryable", "PastRecoveryPoint", "unknown"]),
        ("in_progress, retried",         &["in_progress", "in_progress", "completed", "failed_replayable", "failed_retryable", "failed_retryable",  "unknown"]),
        ("in_progress, took over doubt", &["in_progress", "in_progress", "completed", "failed_replayable", "TookOverDoubt",    "TookOverDoubt",     "unknown"]),
        ("unknown",                      &["InDoubt",     "InDoubt",     "completed", "failed_replayable", "InDoubt",          "InDoubt",           "InDoubt"]),
        ("unknown, dead letter",         &["InDoubt",     "InDoubt",     "completed", "failed_replayable", "InDoubt",          "InDoubt",           "InDoubt"]),
        ("completed",                    &["Finished",    "Finished",    "Finished",  "Finished",          "Finished",         "Finished",          "Finished"]),
        ("failed_replayable",            &["Finished",    "Finished",    "Finished",  "Finished",          "Finished",         "Finished",          "Finished"]),
        ("failed_retryable",             &["Finished",    "Finished",    "Finished",  "Finished",          "Finished",         "Finished",          "Finished"]),
        ("expired",                      &["Finished",    "Finished",    "Finished",  "Finished",          "Finished",         "Finished",          "Finished"]),
    ];
    assert_table(&names, &table, |record, column| {
        let decided = act(record, &Claim::of(record), &acts[column].1);
        told_in_words(record, decided, lease_over())
    });
}

#[test]
fn whoever_cannot_name_operation_attempt_and_owner_is_fenced_in_every_state() {
    for (name, record) in every_record() {
        let claim = Claim::of(&record);
        let others = [
            Claim { operation_id: OperationId::from_u128(8), ..claim },
            Claim { attempt: claim.attempt + 1, ..claim },
            Claim { attempt: claim.attempt - 1, ..claim },
            Claim { owner: Owner::from_u128(99), ..claim },
        ];
        for other in others {
            assert!(!other.holds(&record));
            for (what, owner_act) in all_acts() {
                assert_eq!(act(&record, &other, &owner_act), Err(Refusal::Fenced), "{name} × {what}");
            }
        }
    }
}

#[test]
fn fencing_is_by_owner_and_never_by_a_clock() {
    // `act` is not even told what time it is: a lease that ran out long ago fences nobody.
    let record = reserved();
    let late = acted(&record, &complete(), after(1_000_000));
    assert_eq!(late.state, State::Completed);
    assert_eq!(acted(&record, &Act::Extend { lease: LEASE }, after(1_000_000)).times.lease, after(1_000_030));
}

#[test]
fn a_late_owner_may_still_complete_what_became_unknown() {
    let doubted =
        applied(&reserved(), watch(&reserved(), &policy(), lease_over()).unwrap(), lease_over()).unwrap();
    assert_eq!((doubted.state, doubted.owner), (State::Unknown, ME));
    let completed = acted(&doubted, &complete(), after(500));
    assert_eq!(completed.state, State::Completed);
    assert_eq!(completed.response, Some(response("done")));
    assert_eq!((completed.last_error, completed.times.reconcile), (None, None));
    assert_eq!(
        completed.times.expires,
        Some(after(500).plus(RETENTION)),
        "the window runs from the late word"
    );
}

#[test]
fn a_late_owner_may_still_fail_a_dead_letter() {
    let dead =
        acted(&reserved(), &Act::Doubt { error: "timeout".into(), settling: Settling::Operator }, START);
    assert!(dead.dead_letter);
    let failed = acted(&dead, &fail(), after(500));
    assert_eq!((failed.state, failed.dead_letter), (State::FailedReplayable, false));
}

#[test]
fn a_late_owner_may_not_call_what_became_unknown_retryable_or_unseen() {
    let record = unknown();
    for owner_act in [retryable(), release(), advance(), Act::Extend { lease: LEASE }, give_up()] {
        assert_eq!(act(&record, &Claim::of(&record), &owner_act), Err(Refusal::InDoubt));
    }
}

#[test]
fn an_owner_whose_operation_was_taken_over_is_refused_everything() {
    let record = reserved();
    let took_over = taken(&record, &Policy { stale: Stale::Resume, ..policy() }, lease_over());
    for (name, owner_act) in all_acts() {
        assert_eq!(act(&took_over, &Claim::of(&record), &owner_act), Err(Refusal::Fenced), "{name}");
    }
}

#[test]
fn an_owner_that_was_settled_by_somebody_else_is_refused_everything() {
    for evidence in super::settle::all_evidence() {
        let record = unknown();
        let settled = super::settle::settled(&record, evidence, lease_over());
        for (name, owner_act) in all_acts() {
            assert_eq!(act(&settled, &Claim::of(&record), &owner_act), Err(Refusal::Fenced), "{name}");
        }
    }
}

#[test]
fn an_owner_whose_own_word_is_there_is_told_so() {
    // How a lost acknowledgement is read back: the word is ours, so it was written.
    for owner_act in [complete(), fail(), retryable()] {
        let record = acted(&reserved(), &owner_act, START);
        assert_eq!(act(&record, &Claim::of(&record), &owner_act), Err(Refusal::Finished));
    }
}

#[test]
fn a_heartbeat_moves_the_lease_and_nothing_else() {
    let record = reserved();
    let extended = acted(&record, &Act::Extend { lease: LEASE }, after(10));
    let mut expected = record.clone();
    expected.version += 1;
    expected.times.lease = after(40);
    assert_eq!(extended, expected);
}

#[test]
fn a_recovery_point_keeps_what_the_next_owner_needs() {
    let record = acted(&reserved(), &advance(), after(10));
    assert_eq!(record.recovery_point.as_deref(), Some("charged"));
    assert_eq!(record.checkpoint.as_deref(), Some(&b"7"[..]));
    assert_eq!(record.times.lease, after(40));
    let took_over = taken(&record, &Policy { stale: Stale::Resume, ..policy() }, lease_over());
    assert_eq!(took_over.recovery_point, record.recovery_point);
    assert_eq!(took_over.checkpoint, record.checkpoint);
}

#[test]
fn the_first_attempt_is_released_as_if_never_seen() {
    let record = reserved();
    assert_eq!(act(&record, &Claim::of(&record), &release()), Ok(Change::Remove));
}

#[test]
fn a_release_after_a_recovery_point_is_refused() {
    let record = acted(&reserved(), &advance(), START);
    assert_eq!(act(&record, &Claim::of(&record), &release()), Err(Refusal::PastRecoveryPoint));
}

#[test]
fn a_later_attempt_that_is_released_goes_back_to_retryable() {
    let retried = taken(&acted(&reserved(), &retryable(), START), &policy(), START);
    assert_eq!((retried.attempt, retried.origin), (2, Origin::Retry));
    let released = acted(&retried, &release(), after(5));
    assert_eq!(released.state, State::FailedRetryable);
    assert_eq!(released.last_error.as_deref(), Some("released"));
    assert_eq!(released.times.expires, Some(after(5).plus(RETENTION)), "its window starts again");
    assert_eq!(taken(&released, &policy(), after(6)).attempt, 3);
}

#[test]
fn an_attempt_that_took_over_doubt_ends_in_completed_failed_or_unknown() {
    for stale in [Stale::Resume, Stale::Rerun] {
        let record = taken(&reserved(), &Policy { stale, ..policy() }, lease_over());
        assert_eq!((record.origin, record.attempt, record.owner), (Origin::Doubt, 2, SOMEBODY));
        for owner_act in [retryable(), release()] {
            assert_eq!(act(&record, &Claim::of(&record), &owner_act), Err(Refusal::TookOverDoubt));
        }
        assert_eq!(acted(&record, &complete(), lease_over()).state, State::Completed);
        assert_eq!(acted(&record, &fail(), lease_over()).state, State::FailedReplayable);
        assert_eq!(acted(&record, &give_up(), lease_over()).state, State::Unknown);
    }
}

#[test]
fn doubt_is_scheduled_as_the_policy_says() {
    let doubted = |settling| acted(&reserved(), &Act::Doubt { error: "timeout".into(), settling }, after(1));
    let polled = doubted(Settling::Poll { first: Duration::from_secs(5) });
    assert_eq!((polled.dead_letter, polled.times.reconcile), (false, Some(after(6))));
    let webhook = doubted(Settling::Webhook);
    assert_eq!((webhook.dead_letter, webhook.times.reconcile), (false, None));
    let operator = doubted(Settling::Operator);
    assert_eq!((operator.dead_letter, operator.times.reconcile), (true, None));
    for record in [polled, webhook, operator] {
        assert_eq!((record.last_error.as_deref(), record.owner), (Some("timeout"), ME));
    }
}

#[test]
fn a_final_state_has_its_window_its_tombstone_and_its_body_counted_from_the_store_s_now() {
    let record = acted(&reserved(), &complete(), after(100));
    assert_eq!(record.times.completed, Some(after(100)));
    assert_eq!(record.times.body_expires, Some(after(100).plus(BODY_RETENTION)));
    assert_eq!(record.times.expires, Some(after(100).plus(RETENTION)));
    assert_eq!(record.times.purge, Some(after(100).plus(RETENTION + TOMBSTONE)));
    let failed = acted(&reserved(), &retryable(), after(100));
    assert_eq!((failed.times.completed, failed.response), (None, None), "nothing was completed");
}

#[test]
fn a_recovery_point_is_committed_once() {
    let advance = |point: &str| Act::Advance { point: point.into(), checkpoint: None, lease: LEASE };
    let record = acted(&reserved(), &advance("charged"), START);
    assert_eq!(act(&record, &Claim::of(&record), &advance("charged")), Err(Refusal::AlreadyAdvanced));
    assert!(act(&record, &Claim::of(&record), &advance("confirmed")).is_ok());
}
