//! A case whose precondition was not seen is inconclusive: it never passes.

use crate::{assert_found, case, checked, options, tell};
use semel_check::{Options, Plan, Report, Severity, Verdict, run};
use semel_testing::faulty_api::{Fault, FaultyApi, Style};

async fn in_style(style: Style, fault: Option<Fault>, change: impl FnOnce(&mut Options)) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::at("127.0.0.1:0", fault, style, directory.path()).await;
    let mut options = options(&format!("http://{}", api.address), directory.path());
    change(&mut options);
    run(&Plan::new(&options).unwrap(), &mut |_| {}).await
}

fn uncounted(only: &'static [&'static str]) -> impl Fn(&mut Options) {
    move |options| {
        (options.count, options.count_at) = (None, None);
        options.only = only.iter().map(|name| (*name).to_owned()).collect();
    }
}

fn assert_verdict(report: &Report, name: &str, verdict: Verdict) {
    assert_eq!(case(report, name).verdict, verdict, "{name}\n{}", tell(report));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_closes_after_the_answer_did_not_hang_up() {
    let report = in_style(Style::WarmsUp, None, |options| options.only = vec!["hangup".into()]).await;
    assert_verdict(&report, "hangup", Verdict::Inconclusive);
    assert!(case(&report, "hangup").details[0].contains("--slow"), "{}", tell(&report));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pair_of_bodies_has_to_be_tried() {
    let report = in_style(Style::NoArrays, None, |options| options.only = vec!["body.deep".into()]).await;
    assert_verdict(&report, "body.deep", Verdict::Inconclusive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_body_that_succeeds_is_suspect_where_nothing_is_counted() {
    let report = checked(Some(Fault::AnotherBodyExecutes), uncounted(&["body.deep"])).await;
    assert_verdict(&report, "body.deep", Verdict::Suspect);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_in_odd_forms_are_not_judged_without_a_count() {
    let report = checked(None, uncounted(&["key.form"])).await;
    assert_verdict(&report, "key.form", Verdict::Inconclusive);
    let quoted = checked(Some(Fault::QuotedKeyCountsAsNone), uncounted(&["key.form"])).await;
    assert_verdict(&quoted, "key.form", Verdict::Suspect);
    let empty = Some(Fault::EmptyKeyCountsAsNone);
    let silent = in_style(Style::NoIds, empty, uncounted(&["key.malformed"])).await;
    assert_verdict(&silent, "key.malformed", Verdict::Inconclusive);
    let named = checked(empty, uncounted(&["key.malformed"])).await;
    assert_verdict(&named, "key.malformed", Verdict::Suspect);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_has_to_be_told_from_a_second_execution() {
    let report = in_style(Style::NoIds, Some(Fault::NoIdempotency), uncounted(&["retry"])).await;
    for name in ["retry", "retry.headers", "retry.marker", "retry.spelling", "retry.trace"] {
        assert_verdict(&report, name, Verdict::Inconclusive);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_every_retry_is_refused_nothing_is_said_of_spellings() {
    let report = checked(Some(Fault::RetryRefused), |options| options.only = vec!["retry".into()]).await;
    assert_verdict(&report, "retry.spelling", Verdict::Inconclusive);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_effects_of_a_control_belong_to_retry() {
    let report = checked(Some(Fault::ExecutesAgainLater), |options| {
        // Slowed requests take seconds: the second effects come before the run ends.
        options.only = vec!["retry".into(), "race".into(), "hangup".into()];
    })
    .await;
    assert_found(Fault::ExecutesAgainLater, &report, &[("retry", Severity::DoubleExecution)]);
    assert_verdict(&report, "control.count", Verdict::Pass);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_query_that_the_user_gives_is_another_request() {
    let report = checked(Some(Fault::QueryIgnored), |options| {
        options.other_send = vec!["POST /payments?dry_run=true".into()];
        options.only = vec!["target".into()];
    })
    .await;
    assert_found(Fault::QueryIgnored, &report, &[("target", Severity::WrongAnswer)]);
    // What refuses the operation under any key says nothing about keys.
    let refused = checked(None, |options| {
        options.other_send = vec!["POST /nowhere".into()];
        options.only = vec!["target".into()];
    })
    .await;
    assert_verdict(&refused, "target", Verdict::Inconclusive);
}
