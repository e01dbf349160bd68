//! The other ways to count: by a ledger, by a command, and what else can be given.

use crate::{assert_clean, assert_found, case, checked, options, tell};
use semel_check::{Options, Plan, Severity, Verdict, run};
use semel_testing::faulty_api::{Fault, FaultyApi};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_and_a_command_count_as_well_as_the_api() {
    for fault in [None, Some(Fault::CheckThenAct)] {
        for by_command in [false, true] {
            let directory = tempfile::tempdir().unwrap();
            let api = FaultyApi::start(fault, directory.path()).await;
            let ledger = directory.path().join("ledger");
            let command = format!("grep -c {{reference}} {} || true", ledger.display());
            let options = Options {
                count: None,
                count_at: None,
                count_cmd: by_command.then_some(command),
                ledger: (!by_command).then_some(ledger),
                only: vec!["retry".into(), "race.same".into()],
                ..options(&format!("http://{}", api.address), directory.path())
            };
            let report = run(&Plan::new(&options).unwrap(), &mut |_| {}).await;
            match fault {
                None => assert_clean(&report, |_| false),
                Some(fault) => assert_found(fault, &report, &[("race.same", Severity::DoubleExecution)]),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_body_comes_from_a_file_by_its_name() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"amount": 99, "reference": "r"}"#).unwrap();
    let name = file.path().display().to_string();
    for given in [name.clone(), format!("@{name}"), r#"{"amount": 99, "reference": "r"}"#.to_owned()] {
        let report = checked(Some(Fault::AnotherBodyExecutes), |options| {
            options.other_body = Some(given.clone());
            options.only = vec!["body.after".into()];
        })
        .await;
        assert_found(Fault::AnotherBodyExecutes, &report, &[("body.after", Severity::DoubleExecution)]);
    }
    let missing = Options {
        other_body: Some("no-such-file.json".into()),
        ..options("http://127.0.0.1:1", file.path())
    };
    let refused = Plan::new(&missing).err().unwrap().to_string();
    assert!(refused.contains("--other-body") && refused.contains("no-such-file.json"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_are_undone_by_their_references() {
    let directory = tempfile::tempdir().unwrap();
    let undone = directory.path().join("undone");
    let report = checked(None, |options| {
        options.undo = Some(format!("echo {{reference}} >> {}", undone.display()));
        options.only = vec!["retry".into()];
    })
    .await;
    assert_eq!(report.remarks, [] as [String; 0]);
    let undone = std::fs::read_to_string(undone).unwrap();
    let references: Vec<&str> = undone.lines().collect();
    let retry = case(&report, "retry");
    assert_eq!(retry.verdict, Verdict::Pass, "{}", tell(&report));
    // Two of control.count, one of control.vary, and one of each case that begins with `retry`.
    assert!(
        references.len() >= 9 && references.iter().all(|reference| reference.starts_with("chk-")),
        "{undone}"
    );
    let mut once = references.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), references.len(), "each once");
}
