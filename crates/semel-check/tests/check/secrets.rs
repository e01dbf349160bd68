//! No secret is in any report, whichever way it was given.

use crate::{case, options};
use semel_check::{Options, Plan, report, run};
use semel_testing::faulty_api::{Fault, FaultyApi, TOKENS};

/// What must not be seen. None of them is part of anything else.
const SECRETS: [&str; 8] = [
    "hunter-slow",
    "hunter-fail",
    "hunter-path",
    "hunter-count",
    "hunter-kill",
    "hunter-undo",
    "hunter-query",
    "hunter-url",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_in_any_report() {
    // Each makes other requests appear in the reports: duplicates and failures, other operations, slowed ones.
    for (fault, shown) in [
        (Fault::NoIdempotency, &["race.same", "fail.5xx"][..]),
        (Fault::QueryIgnored, &["target"]),
        (Fault::DuplicatesGet500, &["race.answer"]),
    ] {
        check(fault, shown).await;
    }
}

async fn check(fault: Fault, shown: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(Some(fault), directory.path()).await;
    let text = |text: &str| Some(text.to_owned());
    let flags = Options {
        slow: text("X-Slow-Secret: hunter-slow"),
        fail_with: text("X-Fail-Token: hunter-fail"),
        other_send: vec!["POST /payments?access_token=hunter-path".into()],
        send: text("POST /payments?token=hunter-query"),
        count: None,
        count_at: None,
        count_cmd: Some(format!(
            "PGPASSWORD=hunter-count; echo 'postgres://me:hunter-url@db' > /dev/null; grep -c {{reference}} {}/ledger || true",
            directory.path().display()
        )),
        // What fails says why, with the password in it.
        undo: text("DB_PASSWORD=hunter-undo; echo \"cannot log in with $DB_PASSWORD\" >&2; exit 1"),
        kill: text("SECRET=hunter-kill; false"),
        start: text("true"),
        rounds: Some(1),
        concurrency: Some(4),
        only: ["race", "fail", "target", "crash"].map(str::to_owned).into(),
        ..options(&format!("http://{}", api.address), directory.path())
    };
    let plan = Plan::new(&flags).unwrap();
    let mut told = String::new();
    let mut report = run(&plan, &mut |progress| {
        if let semel_check::Progress::Ended(case) = progress {
            told += &report::text::progress(case);
        }
    })
    .await;
    report.command = Some(plan.command(&flags, None));
    for name in shown {
        assert!(!case(&report, name).reproduce.is_empty(), "{name}");
    }
    for (format, text) in [
        ("plan", plan.describe()),
        ("progress", told),
        ("json", report::json::render(&report, 1).unwrap()),
        ("text", report::text::render(&report, 1)),
        ("html", report::html::render(&report, 1)),
        ("junit", report::junit::render(&report)),
        ("sarif", report::sarif::render(&report, "check.toml").unwrap()),
        ("github", report::github::render(&report)),
        ("markdown", report::markdown::render(&report, 1)),
    ] {
        for secret in SECRETS.iter().chain(&TOKENS) {
            assert!(!text.contains(secret), "{secret} in {format}: {text}");
        }
    }
    let json = report::json::render(&report, 1).unwrap();
    for shown in ["Bearer ***", "token=***", "by --count-cmd", "--kill '…'"] {
        assert!(json.contains(shown), "{shown}: {json}");
    }
}
