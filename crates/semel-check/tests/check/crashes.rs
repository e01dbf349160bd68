//! Crashes: the API as a process of its own, killed and started by commands.

use crate::{assert_clean, assert_found, options, tell};
use semel_check::{Options, Plan, Report, Severity, Verdict, run};
use semel_testing::faulty_api::{Fault, FaultyApi, Style};
use semel_testing::servers::free_port;
use std::path::Path;
use tempfile::TempDir;

/// Where the child process finds out what it is.
const ADDRESS: &str = "SEMEL_FAULTY_API_ADDRESS";
const DIRECTORY: &str = "SEMEL_FAULTY_API_DIRECTORY";
const FAULT: &str = "SEMEL_FAULTY_API_FAULT";
const STYLE: &str = "SEMEL_FAULTY_API_STYLE";
/// The styles in which the child can answer.
const STYLES: [Style; 4] = [Style::Ietf, Style::Stripe, Style::Iceberg, Style::WarmsUp];

/// Faults that only a crash shows.
pub(crate) const CRASH_FAULTS: &[(Fault, &[(&str, Severity)])] = &[
    (Fault::KeysInMemory, &[("crash.answered", Severity::DoubleExecution)]),
    (Fault::StuckAfterCrash, &[("crash.end", Severity::Stuck)]),
    (Fault::LockGoneAfterCrash, &[("crash.effect", Severity::DoubleExecution)]),
    (Fault::TakeOverIsARace, &[("crash.race", Severity::DoubleExecution)]),
];

/// The API in a process of its own, killed and started by commands.
struct Process {
    directory: TempDir,
    url: String,
}

impl Process {
    fn new(fault: Option<Fault>) -> Self {
        Self::in_style(Style::Ietf, fault)
    }

    fn in_style(style: Style, fault: Option<Fault>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let here = directory.path().display();
        let program = std::env::current_exe().unwrap();
        let fault = fault.map_or(String::new(), |fault| format!("{fault:?}"));
        let start = format!(
            "{ADDRESS}=127.0.0.1:{port} {DIRECTORY}={here} {FAULT}={fault} {STYLE}={style:?} {} --exact crashes::child --ignored >/dev/null 2>&1 & echo $! > {here}/pid",
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

    async fn checked(&self, change: impl FnOnce(&mut Options)) -> Report {
        let started = std::process::Command::new("sh").arg("-c").arg(self.start()).status().unwrap();
        assert!(started.success());
        let mut options = options(&self.url, self.directory.path());
        options.start = Some(self.start());
        options.kill = Some(self.kill());
        options.ready = Some("GET /health".into());
        options.only = vec!["crash".into()];
        change(&mut options);
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
    let name = std::env::var(STYLE).unwrap();
    let style = STYLES.into_iter().find(|style| format!("{style:?}") == name).unwrap();
    let _api = FaultyApi::at(&address, fault, style, Path::new(&directory)).await;
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_fault_of_a_crash_is_found_and_the_correct_api_survives_them() {
    let mut checks = tokio::task::JoinSet::new();
    for (fault, expected) in CRASH_FAULTS {
        checks.spawn(
            async move { (Some(*fault), Process::new(Some(*fault)).checked(|_| {}).await, *expected) },
        );
    }
    checks.spawn(async { (None, Process::new(None).checked(|_| {}).await, &[][..]) });
    // The faults of a crash do not depend on how an API refuses.
    for (style, profile, fault) in [
        (Style::Stripe, "stripe", Some(Fault::LockGoneAfterCrash)),
        (Style::Iceberg, "iceberg", Some(Fault::TakeOverIsARace)),
        (Style::Iceberg, "iceberg", None),
    ] {
        checks.spawn(async move {
            let under = |options: &mut Options| options.profile = Some(profile.into());
            let found = CRASH_FAULTS.iter().find(|(known, _)| Some(*known) == fault);
            let expected = found.map_or(&[][..], |(_, expected)| *expected);
            (fault, Process::in_style(style, fault).checked(under).await, expected)
        });
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_after_the_answer_is_none_of_a_running_request() {
    let ignored = |options: &mut Options| {
        options.slow = Some("X-Not-Slow: 1".into());
        // The answer is always there before the API dies.
        options.kill = options.kill.take().map(|kill| format!("sleep 0.5; {kill}"));
    };
    let report = Process::in_style(Style::WarmsUp, None).checked(ignored).await;
    for name in ["crash.effect", "crash.race"] {
        let case = report.cases.iter().find(|case| case.name == name).unwrap();
        assert_eq!(case.verdict, Verdict::Inconclusive, "{name}: {}", tell(&report));
        assert!(case.details[0].contains("--slow"), "{}", tell(&report));
    }
    let effect = report.cases.iter().find(|case| case.name == "crash.effect").unwrap();
    assert!(effect.details[0].contains("--slow did not"), "{}", tell(&report));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_count_crashes_are_inconclusive() {
    let uncounted = |options: &mut Options| (options.count, options.count_at) = (None, None);
    let report = Process::new(None).checked(uncounted).await;
    for name in ["crash.before", "crash.effect", "crash.race"] {
        let case = report.cases.iter().find(|case| case.name == name).unwrap();
        assert_eq!(case.verdict, Verdict::Inconclusive, "{name}: {}", tell(&report));
    }
    // What answers name proves that keys do not survive.
    let named = |options: &mut Options| {
        uncounted(options);
        options.identity = Some("/id".into());
    };
    let forgets = Process::new(Some(Fault::KeysInMemory)).checked(named).await;
    assert_found(Fault::KeysInMemory, &forgets, &[("crash.answered", Severity::DoubleExecution)]);
}
