//! It can fail, and it does not cry wolf: an API with one fault at a time. Each fault is found by its cases, and the correct API passes
//! every one of them.

use crate::crashes::CRASH_FAULTS;
use crate::{assert_clean, assert_found, checked, tell};
use semel_check::{Severity, cases};
use semel_testing::faulty_api::Fault;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Every fault with the cases that have to find it, and how bad it is. Other cases may find it as well.
const FAULTS: &[(Fault, &[(&str, Severity)])] = &[
    (
        Fault::NoIdempotency,
        &[
            ("retry", Severity::DoubleExecution),
            ("race.same", Severity::DoubleExecution),
            ("race.mixed", Severity::DoubleExecution),
            ("body.after", Severity::DoubleExecution),
        ],
    ),
    (Fault::CheckThenAct, &[("race.same", Severity::DoubleExecution)]),
    (Fault::CallerNotScoped, &[("caller.other", Severity::Leak)]),
    (Fault::ReplayBeforeAuthentication, &[("caller.none", Severity::Leak)]),
    (Fault::ReplayToRevoked, &[("caller.revoked", Severity::Leak)]),
    (Fault::ScopedByToken, &[("retry.token", Severity::DoubleExecution)]),
    (Fault::FirstAnswerForAnotherBody, &[("body.after", Severity::WrongAnswer)]),
    (
        Fault::AnotherBodyExecutes,
        &[("body.after", Severity::DoubleExecution), ("body.during", Severity::DoubleExecution)],
    ),
    (
        Fault::FingerprintStoredWithAnswer,
        &[("body.during", Severity::WrongAnswer), ("race.mixed", Severity::WrongAnswer)],
    ),
    (Fault::AnotherBodyGets500, &[("body.after", Severity::ClientPain), ("body.deep", Severity::ClientPain)]),
    (Fault::NumbersAreDoubles, &[("body.deep", Severity::WrongAnswer)]),
    (Fault::KeyTruncatedAt64, &[("key.tail", Severity::WrongAnswer)]),
    (Fault::KeyCaseFolded, &[("key.case", Severity::WrongAnswer)]),
    (Fault::KeyOptional, &[("key.missing", Severity::Note)]),
    (Fault::EmptyKeyCountsAsNone, &[("key.malformed", Severity::ClientPain)]),
    (Fault::LongKeyIs500, &[("key.malformed", Severity::ClientPain)]),
    (Fault::FirstOfTwoKeysCounts, &[("key.form", Severity::Note)]),
    (Fault::QuotedKeyCountsAsNone, &[("key.form", Severity::Note)]),
    (Fault::KeyAcrossOperations, &[("target", Severity::WrongAnswer)]),
    (Fault::MethodIgnored, &[("target", Severity::WrongAnswer)]),
    // A parameter that the API does not know means nothing to it.
    (Fault::QueryIgnored, &[("target", Severity::Note)]),
    (Fault::ScopedByWrittenPath, &[("path.spelling", Severity::DoubleExecution)]),
    (Fault::LocationLost, &[("retry.headers", Severity::ClientPain)]),
    (Fault::CookieReplayed, &[("caller.cookie", Severity::Leak)]),
    (Fault::NoMarker, &[("retry.marker", Severity::Note)]),
    (Fault::BytesCompared, &[("retry.spelling", Severity::ClientPain)]),
    (Fault::EveryHeaderCounts, &[("retry.trace", Severity::ClientPain)]),
    (Fault::RetryRefused, &[("retry", Severity::LostAnswer)]),
    (Fault::OldRefusalForCorrectedBody, &[("fix.4xx", Severity::Note)]),
    (Fault::ExecutesAfter5xx, &[("fail.5xx", Severity::DoubleExecution)]),
    (Fault::ErrorBodyLost, &[("fail.5xx", Severity::ClientPain)]),
    (Fault::DuplicatesGet500, &[("race.answer", Severity::ClientPain)]),
    (Fault::AnswersMixedUp, &[("race.keys", Severity::WrongAnswer)]),
    (Fault::EachNodeItsOwnKeys, &[("race.nodes", Severity::DoubleExecution)]),
    (Fault::CancelledWithClient, &[("hangup", Severity::LostAnswer)]),
    (Fault::LockedBeforeBody, &[("hangup.body", Severity::Stuck)]),
    (Fault::RefusalQuotesFirstRequest, &[("caller.oracle", Severity::Leak)]),
    (Fault::LifetimeNotTold, &[("window.told", Severity::Note)]),
    (Fault::ExecutesAfterWindow, &[("window", Severity::Note)]),
    (Fault::ExecutesAgainLater, &[("retry", Severity::DoubleExecution)]),
];

/// The cases with which an API is found out that has this fault, and no other.
fn is_alone(fault: Fault) -> bool {
    // What these break is so much that many cases see it.
    ![
        Fault::NoIdempotency,
        Fault::CheckThenAct,
        Fault::AnswersMixedUp,
        Fault::RetryRefused,
        Fault::ExecutesAgainLater,
        Fault::KeyOptional,
    ]
    .contains(&fault)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_correct_api_passes_every_case() {
    let report = checked(None, |_| {}).await;
    assert_clean(&report, |name| name.starts_with("crash."));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_fault_is_found_by_its_cases() {
    let mut checks = tokio::task::JoinSet::new();
    // More at once only wait for each other.
    let at_once = Arc::new(Semaphore::new(12));
    for (fault, expected) in FAULTS {
        let at_once = Arc::clone(&at_once);
        checks.spawn(async move {
            let _turn = at_once.acquire().await.unwrap();
            let report = checked(Some(*fault), |_| {}).await;
            assert_found(*fault, &report, expected);
            let bad = report.cases.iter().filter(|case| case.severity.is_some_and(Severity::is_bad)).count();
            assert!(!is_alone(*fault) || bad <= 5, "{fault:?} is one fault:\n{}", tell(&report));
        });
    }
    let mut missed = 0;
    while let Some(done) = checks.join_next().await {
        missed += usize::from(done.is_err());
    }
    assert_eq!(missed, 0, "so many faults were not found as they should be: see above");
}

#[test]
fn every_case_has_a_fault_that_it_finds() {
    let found: Vec<&str> = FAULTS
        .iter()
        .chain(CRASH_FAULTS)
        .flat_map(|(_, cases)| cases.iter().map(|(name, _)| *name))
        .collect();
    for case in cases::CASES {
        // The controls find faults of the command line. What `crash.before` finds is in the test of the fault that blocks keys.
        let aside = case.name.starts_with("control.") || case.name == "crash.before";
        assert!(aside || found.contains(&case.name), "{} finds nothing", case.name);
    }
}
