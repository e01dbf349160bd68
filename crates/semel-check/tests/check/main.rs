//! What `semel check` finds, and what it does not: on an API with one fault at a time, and on correct ones of several styles.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

mod counting;
mod crashes;
mod faults;
mod harm;
mod reports;
mod secrets;
mod styles;
mod uncounted;
mod unseen;

use semel_check::{CaseResult, Options, Plan, Report, Severity, Verdict, run};
use semel_testing::faulty_api::{Fault, FaultyApi, TOKENS};
use std::path::Path;

/// Everything that can be given, for an API with its files in `directory`.
fn options(url: &str, directory: &Path) -> Options {
    let directory = directory.display();
    let text = |text: &str| Some(text.to_owned());
    Options {
        send: text("POST /payments"),
        body: text(r#"{"amount": 10, "reference": "r"}"#),
        header: vec![format!("Authorization: Bearer {}", TOKENS[0])],
        same_caller: vec![format!("Authorization: Bearer {}", TOKENS[1])],
        other_caller: vec![format!("Authorization: Bearer {}", TOKENS[2])],
        profile: text("ietf"),
        mark: text("/reference"),
        count: text("GET /payments?reference={reference}"),
        count_at: text("/total"),
        settle: text("200ms"),
        slow: text("X-Delay: 2000"),
        fail_with: text("X-Fail: 1"),
        other_send: vec!["POST /refunds".into(), "PUT /payments".into()],
        hostile: true,
        revoke: Some(format!("touch {directory}/revoked")),
        expire: Some(format!("touch {directory}/expired")),
        concurrency: Some(8),
        rounds: Some(2),
        rps: Some(100_000),
        patience: text("1s"),
        seed: Some(1),
        ..Options::for_target(url)
    }
}

async fn checked(fault: Option<Fault>, change: impl FnOnce(&mut Options)) -> Report {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(fault, directory.path()).await;
    let mut options = options(&format!("http://{}", api.address), directory.path());
    options.also = vec![format!("http://{}", api.other)];
    change(&mut options);
    run(&Plan::new(&options).unwrap(), &mut |_| {}).await
}

fn tell(report: &Report) -> String {
    report
        .cases
        .iter()
        .map(|case| format!("{:<16} {:<16} {}\n", case.told(), case.name, case.details.join("; ")))
        .collect()
}

/// The fault is found by its cases.
fn assert_found(fault: Fault, report: &Report, expected: &[(&str, Severity)]) {
    for (name, severity) in expected {
        let case = report.cases.iter().find(|case| case.name == *name).unwrap();
        assert_eq!(case.severity, Some(*severity), "{fault:?}: {name}\n{}", tell(report));
    }
    assert_eq!(report.stopped, None, "{fault:?}");
}

/// Every case that ran has passed, and all but `aside` ran.
fn assert_clean(report: &Report, aside: impl Fn(&str) -> bool) {
    for case in &report.cases {
        let right = if aside(case.name) { Verdict::NotRun } else { Verdict::Pass };
        assert_eq!(case.verdict, right, "{}\n{}", case.name, tell(report));
    }
    assert_eq!(report.exit_status(Some(Severity::Note)), 0);
}

fn case<'r>(report: &'r Report, name: &str) -> &'r CaseResult {
    report.cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("{name} did not run"))
}
