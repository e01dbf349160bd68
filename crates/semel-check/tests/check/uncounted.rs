//! Without a count: what answers name proves a double execution, and never its absence.

use crate::{assert_found, case, checked, tell};
use semel_check::{Options, Severity, Verdict};
use semel_testing::faulty_api::Fault;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_count_a_double_execution_is_only_suspected() {
    let uncounted = |options: &mut Options| (options.count, options.count_at) = (None, None);
    let report = checked(Some(Fault::NoIdempotency), uncounted).await;
    let retry = report.cases.iter().find(|case| case.name == "retry").unwrap();
    assert_eq!(retry.verdict, Verdict::Suspect, "{}", tell(&report));
    assert!(
        report.cases.iter().all(|case| case.severity != Some(Severity::DoubleExecution)),
        "{}",
        tell(&report)
    );
    assert_ne!(report.exit_status(None), 0);
    let correct = checked(None, uncounted).await;
    assert!(
        correct.cases.iter().all(|case| case.severity.is_none() && case.verdict != Verdict::Suspect),
        "{}",
        tell(&correct)
    );
    assert_eq!(correct.exit_status(None), 2, "races were not seen");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_named_identity_proves_what_answers_show() {
    let named = |options: &mut Options| {
        (options.count, options.count_at, options.identity) = (None, None, Some("/id".into()))
    };
    let report = checked(Some(Fault::NoIdempotency), named).await;
    assert_found(Fault::NoIdempotency, &report, &[("retry", Severity::DoubleExecution)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_seen_is_inconclusive() {
    let report = checked(None, |options| options.vary = Some("/reference=".into())).await;
    // The varied body is marked like every other: nothing differs, and nothing may be said of other bodies.
    assert_eq!(report.stopped, None);
    let unfit = checked(None, |options| options.vary = Some("/amount=none".into())).await;
    for name in ["control.vary", "body.after", "body.during", "race.mixed"] {
        let case = unfit.cases.iter().find(|case| case.name == name).unwrap();
        assert_eq!(case.verdict, Verdict::Inconclusive, "{}", tell(&unfit));
    }
    assert_eq!(unfit.exit_status(None), 2);
    let wrong_count = checked(None, |options| options.count = Some("GET /payments".into())).await;
    assert!(wrong_count.stopped.is_some(), "{}", tell(&wrong_count));
    assert_eq!(wrong_count.exit_status(None), 2);
    let refused = checked(None, |options| options.body = Some(r#"{"reference": "r", "n": 1}"#.into())).await;
    assert!(refused.stopped.as_ref().unwrap().contains("422"), "{:?}", refused.stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_proves_double_executions_in_races_and_never_their_absence() {
    let named = |options: &mut Options| {
        (options.count, options.count_at, options.identity) = (None, None, Some("/id".into()));
        options.only = vec!["race".into(), "hangup".into(), "path".into(), "key.tail".into()];
    };
    let report = checked(Some(Fault::CheckThenAct), named).await;
    assert_found(Fault::CheckThenAct, &report, &[("race.same", Severity::DoubleExecution)]);
    let apart = checked(Some(Fault::EachNodeItsOwnKeys), named).await;
    assert_found(Fault::EachNodeItsOwnKeys, &apart, &[("race.nodes", Severity::DoubleExecution)]);
    let correct = checked(None, named).await;
    for name in ["race.same", "race.mixed", "race.nodes", "hangup", "hangup.body", "path.spelling"] {
        assert_eq!(case(&correct, name).verdict, Verdict::Inconclusive, "{name}: {}", tell(&correct));
    }
    // Two things that were made are two effects.
    for name in ["race.keys", "key.tail"] {
        assert_eq!(case(&correct, name).verdict, Verdict::Pass, "{name}: {}", tell(&correct));
    }
    assert_eq!(correct.exit_status(None), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_nothing_to_count_by_races_are_inconclusive() {
    let report = checked(None, |options| {
        (options.count, options.count_at) = (None, None);
        options.only = vec!["race".into(), "hangup".into()];
    })
    .await;
    for name in ["race.same", "race.mixed", "race.keys", "race.nodes", "hangup", "hangup.body"] {
        assert_eq!(case(&report, name).verdict, Verdict::Inconclusive, "{name}: {}", tell(&report));
    }
}
