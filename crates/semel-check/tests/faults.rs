//! It can fail, and it does not cry wolf: an API with one fault at a time. Each fault is found by its cases, and the correct API passes
//! every one of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use semel_check::{Options, Plan, Report, Severity, Verdict, cases, run};
use semel_testing::faulty_api::{Fault, FaultyApi, TOKENS};
use semel_testing::servers::free_port;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// Where the child process finds out what it is.
const ADDRESS: &str = "SEMEL_FAULTY_API_ADDRESS";
const DIRECTORY: &str = "SEMEL_FAULTY_API_DIRECTORY";
const FAULT: &str = "SEMEL_FAULTY_API_FAULT";

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
    (Fault::NumbersAreDoubles, &[("body.deep", Severity::WrongAnswer)]),
    (Fault::KeyTruncatedAt64, &[("key.tail", Severity::WrongAnswer)]),
    (Fault::KeyCaseFolded, &[("key.case", Severity::WrongAnswer)]),
    (Fault::KeyOptional, &[("key.missing", Severity::Note)]),
    (Fault::EmptyKeyCountsAsNone, &[("key.malformed", Severity::ClientPain)]),
    (Fault::LongKeyIs500, &[("key.malformed", Severity::ClientPain)]),
    (Fault::FirstOfTwoKeysCounts, &[("key.form", Severity::Note)]),
    (Fault::KeyAcrossOperations, &[("target", Severity::WrongAnswer)]),
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

/// Faults that only a crash shows.
const CRASH_FAULTS: &[(Fault, &[(&str, Severity)])] = &[
    (Fault::KeysInMemory, &[("crash.answered", Severity::DoubleExecution)]),
    (Fault::StuckAfterCrash, &[("crash.end", Severity::Stuck)]),
    (Fault::LockGoneAfterCrash, &[("crash.effect", Severity::DoubleExecution)]),
    (Fault::TakeOverIsARace, &[("crash.race", Severity::DoubleExecution)]),
];

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
        other_send: vec!["POST /refunds".into()],
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
async fn no_secret_is_in_any_report() {
    let report = checked(Some(Fault::NoIdempotency), |_| {}).await;
    for text in [
        semel_check::report::json::render(&report, 1).unwrap(),
        semel_check::report::text::render(&report, 1),
        semel_check::report::html::render(&report, 1),
    ] {
        assert!(!text.contains(TOKENS[0]) && text.contains("Bearer ***"), "{text}");
    }
}

/// The API in a process of its own, killed and started by commands.
struct Process {
    directory: TempDir,
    url: String,
}

impl Process {
    fn new(fault: Option<Fault>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let here = directory.path().display();
        let program = std::env::current_exe().unwrap();
        let fault = fault.map_or(String::new(), |fault| format!("{fault:?}"));
        let start = format!(
            "{ADDRESS}=127.0.0.1:{port} {DIRECTORY}={here} {FAULT}={fault} {} --exact child --ignored >/dev/null 2>&1 & echo $! > {here}/pid",
            program.display()
        );
        std::fs::write(directory.path().join("start"), start).unwrap();
        Self { directory, url: format!("http://127.0.0.1:{port}") }
    }

    fn start(&self) -> String {
        format!("sh {}/start", self.directory.path().display())
    }

    fn kill(&self) -> String {
        format!("kill -9 $(cat {}/pid)", self.directory.path().display())
    }

    async fn checked(&self) -> Report {
        let started = std::process::Command::new("sh").arg("-c").arg(self.start()).status().unwrap();
        assert!(started.success());
        let mut options = options(&self.url, self.directory.path());
        options.start = Some(self.start());
        options.kill = Some(self.kill());
        options.ready = Some("GET /health".into());
        options.only = vec!["crash".into()];
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while tokio::net::TcpStream::connect(self.url.strip_prefix("http://").unwrap()).await.is_err() {
            assert!(std::time::Instant::now() < deadline, "the child does not listen");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        run(&Plan::new(&options).unwrap(), &mut |_| {}).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already.
        let _status = std::process::Command::new("sh")
            .arg("-c")
            .arg(self.kill())
            .stderr(std::process::Stdio::null())
            .status();
    }
}

/// Not a test: what [`Process`] starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process of other tests"]
async fn child() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let directory = std::env::var(DIRECTORY).unwrap();
    let name = std::env::var(FAULT).unwrap();
    let fault = CRASH_FAULTS.iter().map(|(fault, _)| *fault).find(|fault| format!("{fault:?}") == name);
    let _api = FaultyApi::at(&address, fault, Path::new(&directory)).await;
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_fault_of_a_crash_is_found_and_the_correct_api_survives_them() {
    let mut checks = tokio::task::JoinSet::new();
    for (fault, expected) in CRASH_FAULTS {
        checks.spawn(async move { (Some(*fault), Process::new(Some(*fault)).checked().await, *expected) });
    }
    checks.spawn(async { (None, Process::new(None).checked().await, &[][..]) });
    while let Some(done) = checks.join_next().await {
        let (fault, report, expected) = done.unwrap();
        match fault {
            Some(fault) => {
                assert_found(fault, &report, expected);
                if fault == Fault::StuckAfterCrash {
                    assert_found(fault, &report, &[("crash.before", Severity::Stuck)]);
                }
            }
            None => assert_clean(&report, |_| false),
        }
    }
}
