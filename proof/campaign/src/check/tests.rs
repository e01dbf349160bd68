use super::*;
use crate::plan::{Request, operations};
use serde_json::json;
use std::time::Duration;

const OPEN: fn() -> Value = || json!({ "in_progress": 0, "unknown": 0, "dead_letters": 0 });

/// One operation with a request of each variant.
fn operation() -> Operation {
    let mut operation = operations(1, 1, 1).remove(0);
    operation.window = Window::Day;
    operation.requests = [Variant::Plain, Variant::Altered, Variant::Neighbour, Variant::Malformed]
        .map(|variant| Request { after: Duration::ZERO, gateway: 0, variant, hangs_up: false })
        .into();
    operation
}

fn told(operation: &Operation, variant: Variant, at: u64, answer: Answer) -> Told {
    let (sent, heard) = (Duration::from_millis(at), Duration::from_millis(at + 5));
    Told { operation: operation.number, variant, sent, heard, answer: Some(answer) }
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer {
        status,
        replayed: false,
        content_type: "application/json".into(),
        operation_id: Some("0198".into()),
        body: body.to_string(),
    }
}

fn paid(operation: &Operation, variant: Variant) -> Answer {
    answer(201, &json!({ "charge": "ch_1", "reference": operation.reference(variant) }))
}

fn replayed(answer: Answer) -> Answer {
    Answer { replayed: true, ..answer }
}

fn problem(status: u16, code: &str) -> Answer {
    answer(status, &json!({ "code": code }))
}

/// A log in which everything is as it should be.
fn good() -> (Operation, Vec<Told>, BTreeMap<String, u32>) {
    let operation = operation();
    let mismatch = problem(422, "idempotency_key_reused_with_different_payload");
    let log = vec![
        told(&operation, Variant::Plain, 0, paid(&operation, Variant::Plain)),
        told(&operation, Variant::Plain, 100, replayed(paid(&operation, Variant::Plain))),
        told(&operation, Variant::Altered, 100, mismatch),
        told(&operation, Variant::Neighbour, 100, paid(&operation, Variant::Neighbour)),
        told(&operation, Variant::Malformed, 100, problem(400, "idempotency_key_invalid")),
    ];
    let charged = [Variant::Plain, Variant::Neighbour].map(|variant| (operation.reference(variant), 1));
    (operation, log, charged.into())
}

fn objections(change: impl FnOnce(&Operation, &mut Vec<Told>, &mut BTreeMap<String, u32>)) -> Vec<String> {
    let (operation, mut log, mut ledger) = good();
    change(&operation, &mut log, &mut ledger);
    judge(&[operation], &log, &evidence(ledger)).violations
}

fn evidence(ledger: BTreeMap<String, u32>) -> Evidence {
    Evidence {
        profile: Profile::Usual,
        ledger,
        charged: BTreeMap::new(),
        open: OPEN(),
        damaged: BTreeMap::new(),
        time: StoreTime::True,
        keys_replaced: None,
        were_ended: false,
    }
}

fn objects_to(rule: &str, change: impl FnOnce(&Operation, &mut Vec<Told>, &mut BTreeMap<String, u32>)) {
    let objections = objections(change);
    assert!(objections.iter().any(|words| words.starts_with(rule)), "{rule} should object: {objections:?}");
}

#[test]
fn nothing_is_wrong_with_a_good_log() {
    assert_eq!(objections(|_, _, _| {}), Vec::<String>::new());
}

#[test]
fn two_charges_are_noticed() {
    objects_to("I1", |operation, _, ledger| {
        ledger.insert(operation.reference(Variant::Plain), 2);
    });
    objects_to("I1", |operation, _, ledger| {
        ledger.insert(operation.reference(Variant::Altered), 1);
    });
}

#[test]
fn an_acknowledged_payment_that_was_never_charged_is_noticed() {
    objects_to("I1", |operation, _, ledger| {
        ledger.remove(&operation.reference(Variant::Plain));
    });
}

#[test]
fn a_replay_that_differs_is_noticed() {
    objects_to("I2", |_, log, _| {
        if let Some(answer) = &mut log[1].answer {
            answer.body = answer.body.replace("ch_1", "ch_2");
        }
    });
    objects_to("I2", |_, log, _| {
        if let Some(answer) = &mut log[1].answer {
            answer.operation_id = Some("0199".into());
        }
    });
}

#[test]
fn a_second_first_answer_and_an_unmarked_replay_are_noticed() {
    objects_to("I2", |_, log, _| {
        if let Some(answer) = &mut log[1].answer {
            answer.replayed = false;
        }
    });
}

#[test]
fn a_forgotten_answer_is_noticed() {
    for later in ["idempotency_key_in_progress", "idempotency_outcome_unknown"] {
        objects_to("I3", |operation, log, _| {
            log.push(told(operation, Variant::Plain, 200, problem(409, later)));
        });
    }
    objects_to("I3", |operation, log, _| {
        let mismatch = problem(422, "idempotency_key_reused_with_different_payload");
        log.push(told(operation, Variant::Plain, 200, mismatch));
    });
    assert!(
        objections(|operation, log, _| {
            log.push(told(operation, Variant::Plain, 200, problem(503, "idempotency_store_unavailable")));
        })
        .is_empty(),
        "a store that is not there may say so"
    );
}

#[test]
fn a_body_that_was_refused_for_a_reservation_that_was_taken_back_may_win_later() {
    let objections = objections(|operation, log, ledger| {
        log.retain(|told| told.variant != Variant::Plain);
        let in_progress = problem(503, "idempotency_store_unavailable");
        log.insert(0, told(operation, Variant::Plain, 0, in_progress));
        log.push(told(operation, Variant::Altered, 300, paid(operation, Variant::Altered)));
        let mismatch = problem(422, "idempotency_key_reused_with_different_payload");
        log.push(told(operation, Variant::Plain, 400, mismatch));
        ledger.remove(&operation.reference(Variant::Plain));
        ledger.insert(operation.reference(Variant::Altered), 1);
    });
    assert_eq!(objections, Vec::<String>::new());
}

#[test]
fn what_is_never_settled_is_noticed() {
    objects_to("I4", |_, log, _| {
        log.retain(|told| told.variant != Variant::Neighbour);
    });
    let (operation, log, ledger) = good();
    let open = json!({ "in_progress": 0, "unknown": 3, "dead_letters": 0 });
    let evidence = Evidence { open, ..evidence(ledger) };
    assert_eq!(judge(&[operation], &log, &evidence).violations.len(), 1);
}

#[test]
fn another_tenants_words_are_noticed() {
    objects_to("I5", |operation, log, _| {
        log[1].answer = Some(replayed(paid(operation, Variant::Neighbour)));
    });
}

#[test]
fn an_altered_body_that_was_executed_is_noticed() {
    objects_to("I6", |operation, log, ledger| {
        log[2].answer = Some(paid(operation, Variant::Altered));
        ledger.insert(operation.reference(Variant::Altered), 1);
    });
    objects_to("I6", |operation, log, _| {
        log[4].answer = Some(paid(operation, Variant::Malformed));
    });
    objects_to("I6", |operation, _, ledger| {
        ledger.insert(operation.reference(Variant::Malformed), 1);
    });
}

#[test]
fn an_answer_that_nobody_documented_is_noticed() {
    objects_to("answers", |operation, log, _| {
        log.push(told(operation, Variant::Plain, 0, problem(500, "internal")));
    });
}

#[test]
fn whoever_has_no_answer_that_stays_is_not_counted_as_definite() {
    let (operation, mut log, _) = good();
    assert_eq!(definite(std::slice::from_ref(&operation), &log), 1);
    log.retain(|told| told.variant != Variant::Plain);
    assert_eq!(definite(&[operation], &log), 0);
}

/// A payment with a brief window: paid at once, replayed within the window and expired afterwards.
fn brief() -> (Operation, Vec<Told>, BTreeMap<String, u32>) {
    let mut operation = operation();
    operation.window = Window::Brief;
    operation.requests.truncate(1);
    let paid = || paid(&operation, Variant::Plain);
    let log = vec![
        told(&operation, Variant::Plain, 0, paid()),
        told(&operation, Variant::Plain, 1_000, replayed(paid())),
        told(&operation, Variant::Plain, 2_500, problem(422, "idempotency_key_expired")),
    ];
    let ledger = [(operation.reference(Variant::Plain), 1)].into();
    (operation, log, ledger)
}

fn objections_to_brief(change: impl FnOnce(&Operation, &mut Vec<Told>)) -> Vec<String> {
    let (operation, mut log, ledger) = brief();
    change(&operation, &mut log);
    judge(&[operation], &log, &evidence(ledger)).violations
}

#[test]
fn a_window_that_ends_too_early_too_late_or_not_at_all_is_noticed() {
    assert_eq!(objections_to_brief(|_, _| {}), Vec::<String>::new());
    let expired = || problem(422, "idempotency_key_expired");
    let early = objections_to_brief(|operation, log| {
        log.truncate(1);
        log.push(told(operation, Variant::Plain, 1_000, expired()));
    });
    assert!(early.iter().any(|words| words.starts_with("I3")), "{early:?}");
    let late = objections_to_brief(|operation, log| {
        log.pop();
        log.push(told(operation, Variant::Plain, 5_000, replayed(paid(operation, Variant::Plain))));
    });
    assert!(late.iter().any(|words| words.starts_with("I3")), "{late:?}");
    let again = objections_to_brief(|operation, log| {
        log.push(told(operation, Variant::Plain, 2_600, replayed(paid(operation, Variant::Plain))));
    });
    assert!(again.iter().any(|words| words.starts_with("I3")), "{again:?}");
    objects_to("I3", |operation, log, _| {
        log.push(told(operation, Variant::Plain, 300, expired()));
    });
}

#[test]
fn a_damaged_answer_is_to_be_called_so_and_no_other() {
    let (operation, log, ledger) = good();
    let at = |millis| Duration::from_millis(millis);
    let damaged =
        |done| [((operation.tenant, operation.key.clone()), Damaged { begun: at(20), done: at(done) })];
    let judged = |log: &[Told], done| {
        let evidence = Evidence { damaged: damaged(done).into(), ..evidence(ledger.clone()) };
        judge(std::slice::from_ref(&operation), log, &evidence).violations
    };
    let called_so = told(&operation, Variant::Plain, 200, problem(500, "idempotency_record_damaged"));
    let replayed_all_the_same = judged(&log, 50);
    assert!(replayed_all_the_same.iter().any(|words| words.starts_with("I10")), "{replayed_all_the_same:?}");
    assert_eq!(judged(&[&log[..], std::slice::from_ref(&called_so)].concat(), 150), Vec::<String>::new());
    objects_to("I10", |_, log, _| log.push(called_so));
}

/// What is said of a good log under a profile, after this change.
fn under(profile: Profile, change: impl FnOnce(&Operation, &mut Vec<Told>, &mut Evidence)) -> Vec<String> {
    let (operation, mut log, ledger) = good();
    let mut evidence = Evidence { profile, ..evidence(ledger) };
    change(&operation, &mut log, &mut evidence);
    judge(&[operation], &log, &evidence).violations
}

fn notices(rule: &str, objections: &[String]) {
    assert!(objections.iter().any(|words| words.starts_with(rule)), "{rule} should object: {objections:?}");
}

#[test]
fn one_operation_that_was_charged_twice_is_noticed_whatever_the_profile() {
    for profile in Profile::ALL {
        let charged = |attempts: &[i64]| {
            under(profile, |_, _, evidence| drop(evidence.charged.insert("0198".into(), attempts.to_vec())))
        };
        assert_eq!(charged(&[1]), Vec::<String>::new());
        notices("I1", &charged(&[1, 2]));
    }
}

#[test]
fn where_202_is_the_rule_there_is_no_409_and_elsewhere_no_202() {
    for code in ["idempotency_key_in_progress", "idempotency_outcome_unknown"] {
        for (profile, status, right) in [
            (Profile::Accepted, 202, true),
            (Profile::Accepted, 409, false),
            (Profile::Usual, 202, false),
            (Profile::Usual, 409, true),
        ] {
            let objections = under(profile, |operation, log, _| {
                log.insert(0, told(operation, Variant::Plain, 0, problem(status, code)));
            });
            assert_eq!(objections.is_empty(), right, "{profile} {status} {code}: {objections:?}");
        }
    }
    // Once there is an answer, neither.
    notices(
        "I3",
        &under(Profile::Accepted, |operation, log, _| {
            log.push(told(operation, Variant::Plain, 300, problem(202, "idempotency_key_in_progress")));
        }),
    );
}

#[test]
fn whoever_did_not_wait_is_noticed_unless_it_was_let_go() {
    let after = |profile, wait: u64, were_ended, also: Option<Answer>| {
        let objections = under(profile, |operation, log, evidence| {
            log.truncate(1);
            log[0].heard = Duration::from_secs(5);
            let mut early = told(operation, Variant::Plain, 0, problem(409, "idempotency_key_in_progress"));
            early.heard = early.sent + Duration::from_millis(wait);
            log.push(early);
            log.extend(also.map(|also| told(operation, Variant::Plain, 0, also)));
            evidence.were_ended = were_ended;
        });
        objections.iter().any(|words| words.starts_with("answers"))
    };
    assert!(after(Profile::Wait, 10, false, None));
    assert!(after(Profile::Wait, 999, false, None));
    assert!(!after(Profile::Wait, 1_000, false, None));
    assert!(!after(Profile::Wait, 10, true, None), "a gateway that ends lets go of those who wait");
    assert!(!after(Profile::Wait, 10, false, Some(problem(503, "nothing_done"))), "so does a release");
    assert!(!after(Profile::Usual, 10, false, None));
}

#[test]
fn old_keys_that_cannot_be_taken_away_are_noticed() {
    let replaced = |replaced| under(Profile::Reload, |_, _, evidence| evidence.keys_replaced = replaced);
    assert_eq!(replaced(Some(true)), Vec::<String>::new());
    notices("I14", &replaced(Some(false)));
}

/// A key that is used again after its window: paid, replayed, and paid once more as another operation.
fn again(change: impl FnOnce(&Operation, &mut Vec<Told>, &mut Evidence)) -> Vec<String> {
    let mut operation = operation();
    operation.window = Window::Brief;
    operation.requests.truncate(1);
    let paid = |id: &str| Answer { operation_id: Some(id.into()), ..paid(&operation, Variant::Plain) };
    let mut log = vec![
        told(&operation, Variant::Plain, 0, paid("01-98")),
        told(&operation, Variant::Plain, 1_000, replayed(paid("01-98"))),
        told(&operation, Variant::Plain, 2_500, paid("0199")),
        told(&operation, Variant::Plain, 2_600, replayed(paid("0199"))),
    ];
    let mut evidence = evidence([(operation.reference(Variant::Plain), 2)].into());
    evidence.profile = Profile::ExpiredNew;
    evidence.charged = [("0198".to_owned(), vec![1]), ("0199".to_owned(), vec![1])].into();
    change(&operation, &mut log, &mut evidence);
    judge(&[operation], &log, &evidence).violations
}

#[test]
fn a_second_charge_is_right_only_after_the_window_and_only_where_keys_are_used_again() {
    assert_eq!(again(|_, _, _| {}), Vec::<String>::new());
    notices("I1", &again(|_, _, evidence| evidence.profile = Profile::Usual));
    notices("I1", &again(|_, _, evidence| drop(evidence.charged.remove("0199"))));
    notices("I1", &again(|_, _, evidence| evidence.charged.entry("0198".into()).or_default().push(2)));
    notices(
        "I3",
        &again(|_, log, _| {
            log[2].sent = Duration::from_millis(1_100);
            log[2].heard = Duration::from_millis(1_200);
        }),
    );
    // A step that was followed may have ended the window, and by so much alone.
    let by_a_step = |followed| {
        again(|_, log, evidence| {
            log[2].sent = Duration::from_millis(1_100);
            log[2].heard = Duration::from_millis(1_200);
            evidence.time = StoreTime::Stepped { followed: Duration::from_millis(followed) };
        })
    };
    assert_eq!(by_a_step(800), Vec::<String>::new());
    notices("I3", &by_a_step(700));
}

#[test]
fn a_window_that_ends_late_is_right_only_where_a_clock_stepped() {
    let late = |time| {
        let mut operation = operation();
        operation.window = Window::Brief;
        operation.requests.truncate(1);
        let log = [
            told(&operation, Variant::Plain, 0, paid(&operation, Variant::Plain)),
            told(&operation, Variant::Plain, 9_000, replayed(paid(&operation, Variant::Plain))),
        ];
        let ledger = [(operation.reference(Variant::Plain), 1)].into();
        judge(&[operation], &log, &Evidence { time, ..evidence(ledger) }).violations
    };
    notices("I3", &late(StoreTime::True));
    assert_eq!(late(StoreTime::Stepped { followed: Duration::ZERO }), Vec::<String>::new());
}

#[test]
fn what_was_over_stays_over_where_keys_are_used_again() {
    notices(
        "I3",
        &again(|_, log, _| {
            let old = log[1].clone();
            log.push(Told { sent: Duration::from_millis(3_000), heard: Duration::from_millis(3_005), ..old });
        }),
    );
    notices(
        "I3",
        &again(|operation, log, _| {
            log.push(told(operation, Variant::Plain, 3_000, problem(422, "idempotency_key_expired")));
        }),
    );
    notices(
        "I2",
        &again(|_, log, _| {
            if let Some(answer) = &mut log[3].answer {
                answer.replayed = false;
            }
        }),
    );
    notices(
        "I2",
        &again(|_, log, _| {
            if let Some(answer) = &mut log[3].answer {
                answer.body = answer.body.replace("ch_1", "ch_2");
            }
        }),
    );
    notices(
        "I4",
        &again(|_, log, evidence| {
            log.clear();
            evidence.charged.clear();
        }),
    );
}
