//! Evidence, and the questions that lead to it.

use super::*;

pub(super) fn all_evidence() -> [Evidence; 4] {
    [
        Evidence::Completed { response: Some(response("it happened")), resource: None },
        Evidence::Failed { response: Some(response("declined")), resource: None },
        Evidence::NotExecuted,
        Evidence::Absent,
    ]
}

fn brings(evidence: Evidence) -> Settlement {
    Settlement {
        settler: SETTLER,
        actor: Actor::Operator("ada".into()),
        evidence,
        note: Some("asked the bank".into()),
        windows: windows(),
    }
}

pub(super) fn settled(record: &Record, evidence: Evidence, now: Timestamp) -> Record {
    let change = settle(record, &About::of(record), &brings(evidence), now).expect("evidence settles");
    applied(record, change, now).expect("the record stays")
}

#[test]
fn each_evidence_in_each_state() {
    let events = ["completed", "failed", "not executed", "absent"];
    let settles: &[&str] = &["completed", "failed_replayable", "failed_retryable", "failed_retryable"];
    let not_unknown: &[&str] = &["NotUnknown"; 4];
    let rows: Vec<(&str, &[&str])> = every_record()
        .iter()
        .map(|(name, record)| (*name, if record.state == State::Unknown { settles } else { not_unknown }))
        .collect();
    assert_table(&events, &rows, |record, column| {
        let evidence = all_evidence()[column].clone();
        told_in_words(
            record,
            settle(record, &About::of(record), &brings(evidence), lease_over()),
            lease_over(),
        )
    });
}

#[test]
fn evidence_fences_the_owner_and_ends_all_asking() {
    for evidence in all_evidence() {
        let record = settled(&unknown(), evidence, lease_over());
        assert_eq!((record.owner, record.attempt), (SETTLER, 1));
        assert_eq!((record.dead_letter, record.reconcile_attempts, record.times.reconcile), (false, 0, None));
        assert_eq!(record.times.expires, Some(lease_over().plus(RETENTION)));
    }
}

#[test]
fn evidence_tells_who_brought_it_and_why() {
    let evidence = all_evidence()[0].clone();
    let Ok(Change::Put { history: Some(entry), .. }) =
        settle(&unknown(), &About::of(&unknown()), &brings(evidence), START)
    else {
        panic!("evidence settles")
    };
    assert_eq!((entry.happening, entry.attempt), (Happening::SettledCompleted, 1));
    assert_eq!(
        (entry.actor.to_string().as_str(), entry.note.as_deref()),
        ("operator:ada", Some("asked the bank"))
    );
}

#[test]
fn absence_counts_only_once_the_lease_is_over() {
    let record = unknown();
    let absent = brings(Evidence::Absent);
    let last = START.plus(LEASE);
    let before = Timestamp::from_millis(last.as_millis() - 1);
    assert_eq!(settle(&record, &About::of(&record), &absent, before), Err(Refusal::LeaseRunning));
    assert!(settle(&record, &About::of(&record), &absent, last).is_ok());
}

#[test]
fn absence_counts_only_for_the_attempt_that_was_asked_about() {
    let second = acted(&taken(&acted(&reserved(), &retryable(), START), &policy(), START), &give_up(), START);
    assert_eq!((second.state, second.attempt), (State::Unknown, 2));
    for attempt in [1, 3] {
        let about = About { attempt: Some(attempt), ..About::of(&second) };
        assert_eq!(
            settle(&second, &about, &brings(Evidence::Absent), lease_over()),
            Err(Refusal::OtherAttempt)
        );
    }
    assert_eq!(settled(&second, Evidence::Absent, lease_over()).state, State::FailedRetryable);
}

#[test]
fn evidence_that_took_time_counts_for_the_attempt_that_was_looked_into() {
    let asked = About::of(&unknown());
    let second = acted(&taken(&acted(&reserved(), &retryable(), START), &policy(), START), &give_up(), START);
    for evidence in all_evidence() {
        let said = settle(&second, &asked, &brings(evidence.clone()), lease_over());
        let happened = matches!(evidence, Evidence::Completed { .. });
        assert_eq!(
            said.is_ok(),
            happened,
            "that it happened stays true; that it did not says nothing of later attempts"
        );
        assert!(happened || said == Err(Refusal::OtherAttempt));
    }
    for evidence in all_evidence() {
        assert!(settle(&second, &About::of(&second), &brings(evidence), lease_over()).is_ok());
    }
}

#[test]
fn evidence_that_names_no_attempt_counts_only_if_it_says_that_it_happened() {
    let second = acted(&taken(&acted(&reserved(), &retryable(), START), &policy(), START), &give_up(), START);
    for record in [unknown(), second] {
        let about = About { attempt: None, ..About::of(&record) };
        for evidence in all_evidence() {
            let said = settle(&record, &about, &brings(evidence.clone()), lease_over());
            match evidence {
                Evidence::Completed { .. } => assert!(said.is_ok(), "it is true of the operation for good"),
                _ => assert_eq!(said, Err(Refusal::AttemptNotNamed), "attempt {}", record.attempt),
            }
        }
    }
}

#[test]
fn evidence_about_another_operation_under_the_key_is_refused() {
    for attempt in [Some(1), None] {
        let other = About { operation_id: OperationId::from_u128(8), attempt };
        for (name, record) in every_record() {
            for evidence in all_evidence() {
                let said = settle(&record, &other, &brings(evidence), lease_over());
                assert_eq!(said, Err(Refusal::OtherOperation), "{name}");
            }
        }
    }
}

#[test]
fn evidence_that_took_time_still_moves_unknown_alone() {
    for (name, record) in every_record() {
        if record.state == State::Unknown {
            continue;
        }
        for attempt in [Some(record.attempt), Some(record.attempt + 1), None] {
            let about = About { attempt, ..About::of(&record) };
            for evidence in all_evidence() {
                let said = settle(&record, &about, &brings(evidence), lease_over());
                assert_eq!(said, Err(Refusal::NotUnknown), "{name}");
            }
        }
    }
}

#[test]
fn what_is_settled_as_not_executed_may_be_executed_again() {
    for evidence in [Evidence::NotExecuted, Evidence::Absent] {
        let record = settled(&unknown(), evidence, lease_over());
        let again = taken(&record, &policy(), lease_over());
        assert_eq!((again.attempt, again.origin, again.owner), (2, Origin::Retry, SOMEBODY));
    }
}

#[test]
fn evidence_without_an_answer_leaves_nothing_to_replay() {
    let record = settled(&unknown(), Evidence::Completed { response: None, resource: None }, START);
    assert_eq!(arriving(&record, &policy(), START), Arrived::NotStored);
}

#[test]
fn a_remark_changes_nothing_but_the_history() {
    for (name, record) in every_record() {
        let change = remark(&record, Actor::Webhook("bank".into()), Some("too late".into()));
        let Change::Put { history: Some(entry), .. } = &change else { panic!("it is told") };
        assert_eq!(entry.happening, Happening::Remarked);
        let after = applied(&record, change, lease_over()).unwrap();
        assert_eq!(Record { version: record.version, ..after }, record, "{name}");
    }
}

const TWICE: Polling = Polling { attempts: 2, next: Duration::from_secs(60) };

#[test]
fn each_poll_in_each_state_before_and_after_it_is_due() {
    let rows: Vec<(&str, &[&str])> = every_record()
        .iter()
        .map(|(name, record)| -> (&str, &[&str]) {
            match record.state {
                State::Unknown if !record.dead_letter => (name, &["NotDue", "unknown"]),
                _ => (name, &["NotUnknown", "NotUnknown"]),
            }
        })
        .collect();
    assert_table(&["before", "due"], &rows, |record, column| {
        let now = [START, after(5)][column];
        told_in_words(record, poll(record, &TWICE, now), now)
    });
}

#[test]
fn polls_are_counted_and_the_last_one_leaves_a_dead_letter() {
    let mut record = unknown();
    let mut now = after(5);
    for asked in 1..=2 {
        record = applied(&record, poll(&record, &TWICE, now).unwrap(), now).unwrap();
        assert_eq!((record.reconcile_attempts, record.dead_letter), (asked, false));
        assert_eq!(record.times.reconcile, Some(now.plus(TWICE.next)));
        assert_eq!(poll(&record, &TWICE, now), Err(Refusal::NotDue), "nobody else asks until the next time");
        now = now.plus(TWICE.next);
    }
    let change = poll(&record, &TWICE, now).unwrap();
    let Change::Put { history: Some(entry), .. } = &change else { panic!("it is told") };
    assert_eq!((entry.happening, &entry.actor), (Happening::DeadLettered, &Actor::Reconciler));
    let dead = applied(&record, change, now).unwrap();
    assert!(dead.dead_letter && dead.due().is_none() && dead.owner == ME);
    assert_eq!(poll(&dead, &TWICE, now.plus(TWICE.next)), Err(Refusal::NotUnknown));
}

#[test]
fn a_dead_letter_is_still_settled_by_evidence() {
    let dead =
        acted(&reserved(), &Act::Doubt { error: "timeout".into(), settling: Settling::Operator }, START);
    for evidence in all_evidence() {
        assert!(!settled(&dead, evidence, lease_over()).dead_letter);
    }
}

#[test]
fn nobody_asks_where_a_webhook_will_tell() {
    let record =
        acted(&reserved(), &Act::Doubt { error: "timeout".into(), settling: Settling::Webhook }, START);
    assert_eq!(poll(&record, &TWICE, after(1_000_000)), Err(Refusal::NotDue));
}

#[test]
fn where_a_webhook_was_to_tell_somebody_may_ask_as_well() {
    let doubted = |settling| acted(&reserved(), &Act::Doubt { error: "timeout".into(), settling }, START);
    let Ok(Change::Put { next, history: None }) = ask_as_well(&doubted(Settling::Webhook)) else {
        panic!("it is to be asked about")
    };
    let asked = next.at(lease_over());
    assert_eq!(asked.due(), Some((crate::DueKind::Reconcile, lease_over())));
    assert!(poll(&asked, &TWICE, lease_over()).is_ok());
    let scheduled = doubted(Settling::Poll { first: Duration::from_secs(7) });
    assert_eq!(ask_as_well(&scheduled), Err(Refusal::NotDue), "its time is set");
    for record in [doubted(Settling::Operator), reserved()] {
        assert_eq!(ask_as_well(&record), Err(Refusal::NotUnknown));
    }
}

#[test]
fn an_operator_has_doubt_asked_about_at_once_and_a_dead_letter_as_if_it_were_new() {
    for (dead_letter, asked, left) in [(false, 3, 3), (true, 5, 0)] {
        let mut record = unknown();
        (record.dead_letter, record.reconcile_attempts) = (dead_letter, asked);
        record.times.reconcile = (!dead_letter).then(|| after(9_000));
        let change = ask_now(&record).expect("it is in doubt");
        let next = applied(&record, change, after(60)).expect("the record stays");
        assert_eq!((next.dead_letter, next.reconcile_attempts), (false, left));
        assert_eq!((next.times.reconcile, next.version), (Some(after(60)), record.version + 1));
        assert_eq!((next.state, next.attempt, next.owner), (record.state, record.attempt, record.owner));
    }
    for (name, record) in every_record() {
        assert_eq!(ask_now(&record).is_ok(), record.state == State::Unknown, "{name}");
    }
}
