//! The commands of the guide are commands: each is taken apart as a user's would be, and nothing is sent.

use super::semel;
use semel_testing::faulty_api::{Fault, FaultyApi, Style};
use std::path::Path;
use std::process::Command;

const GUIDE: &str = include_str!("../../../../docs/guides/is-my-api-idempotent.md");

/// Lines of code in the guide, with those that end in `\` joined.
fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    let mut is_code = false;
    for line in GUIDE.replace("\\\n", "").lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            lines.push(line.trim().trim_start_matches("- ").trim_start_matches("run: ").to_owned());
        }
    }
    lines
}

/// What the guide calls `check.toml`.
fn config() -> &'static str {
    let (_, config) = GUIDE.split_once("```toml\n").unwrap();
    config.split_once("```").unwrap().0
}

/// Runs a command of the guide by the shell, as `semel` would be found there.
fn run(command: &str, directory: &Path) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_semel"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(directory).env("PATH", path);
    shell.envs([("ALICE", "alice"), ("ALICE_NEW", "alice2"), ("BOB", "bob")]).output().unwrap()
}

/// A command of the guide, as a user would run it against an API at another address; `more` makes it quick enough for a test.
async fn follow(command: &str, api: &FaultyApi, directory: &Path, more: &str) -> std::process::Output {
    let command = command.split("  #").next().unwrap().replace("localhost:3000", &api.address.to_string());
    let (command, directory) = (format!("{command} {more}"), directory.to_owned());
    tokio::task::spawn_blocking(move || run(&command, &directory)).await.unwrap()
}

/// An API in a directory of its own. It knows everybody as the same caller: the guide's requests have no credentials.
async fn api(fault: Option<Fault>, directory: &Path) -> FaultyApi {
    FaultyApi::at("127.0.0.1:0", fault, Style::Open, directory).await
}

const QUICK: &str = "--rps 2000 --settle 200ms";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_check_of_the_guide_ends_as_it_says() {
    let lines = lines();
    let command = lines.iter().find(|line| line.contains("--count-at /total")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let correct = follow(command, &api(None, directory.path()).await, directory.path(), QUICK).await;
    assert_eq!(correct.status.code(), Some(0), "{correct:?}");
    let directory = tempfile::tempdir().unwrap();
    let faulty = api(Some(Fault::NoIdempotency), directory.path()).await;
    let found = follow(command, &faulty, directory.path(), QUICK).await;
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    let said = String::from_utf8(found.stdout).unwrap();
    // What the guide shows of a report is in it, but for keys and addresses.
    let (_, shown) = GUIDE.split_once("```text\n").unwrap();
    for line in shown.split_once("```").unwrap().0.lines().filter(|line| !line.contains("curl")) {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(said.contains("reproduce  curl -i --path-as-is"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_config_file_of_the_guide_keeps_a_build_as_it_was() {
    let only = format!("{QUICK} --concurrency 4 --rounds 1 --only retry --only race.same");
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let known = api(Some(Fault::CheckThenAct), here).await;
    let write_config = |api: &FaultyApi| {
        let config = config().replace("localhost:3000", &api.address.to_string());
        std::fs::write(here.join("check.toml"), config).unwrap();
    };
    write_config(&known);
    let lines = lines();
    let command = |part: &str| {
        lines.iter().find(|line| line.starts_with("semel check --config") && line.contains(part)).unwrap()
    };
    for (part, file, begins) in
        [("--format sarif", "check.sarif", "{"), ("--format junit", "check.xml", "<?xml")]
    {
        let done = follow(command(part), &known, here, &only).await;
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let report = std::fs::read_to_string(here.join(file)).unwrap();
        assert!(report.starts_with(begins) && report.contains("race.same"), "{report}");
    }
    let annotated = follow(command("--format github"), &known, here, &only).await;
    assert!(
        String::from_utf8_lossy(&annotated.stdout).starts_with("::error title=race.same"),
        "{annotated:?}"
    );
    let first = follow(command("--write-baseline"), &known, here, &only).await;
    assert_eq!(first.status.code(), Some(1), "{first:?}");
    let in_ci = lines.iter().find(|line| line.contains("--baseline known.json") && !line.contains("--write"));
    let again = follow(in_ci.unwrap(), &known, here, &only).await;
    assert_eq!(again.status.code(), Some(0), "what is known fails nothing: {again:?}");
    // What is new does.
    let worse_directory = tempfile::tempdir().unwrap();
    let worse = api(Some(Fault::NoIdempotency), worse_directory.path()).await;
    write_config(&worse);
    let worse = follow(in_ci.unwrap(), &worse, here, &only).await;
    assert_eq!(worse.status.code(), Some(1), "{worse:?}");
}

#[test]
fn every_command_of_the_guide_is_one() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("check.toml"), config()).unwrap();
    let lines = lines();
    let commands: Vec<&String> = lines.iter().filter(|line| line.starts_with("semel check ")).collect();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        if command.contains('…') {
            continue;
        }
        let command = command.split("  #").next().unwrap().replace("--dry-run", "");
        let done = run(&format!("{command} --dry-run"), directory.path());
        assert!(done.status.success(), "{command}: {done:?}");
        assert!(String::from_utf8_lossy(&done.stdout).contains("race.same"), "{command}: {done:?}");
    }
    let gateway = lines.iter().find(|line| line.starts_with("semel gateway ")).unwrap();
    assert!(run(&format!("{gateway} --help"), directory.path()).status.success(), "{gateway}");
}

#[test]
fn every_flag_of_the_guide_is_one() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("check.toml"), config()).unwrap();
    // The table of what else can be checked, and flags in the text.
    let rows = GUIDE.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split('`').nth(1));
    let text = [
        "--identity /id",
        "--format html --report check.html",
        "--fail-on client-pain",
        "--fail-on double-execution",
    ];
    for flags in rows.filter(|flags| flags.starts_with("--")).chain(text) {
        assert!(GUIDE.contains(flags), "{flags}");
        let done = run(&format!("semel check --config check.toml {flags} --dry-run"), directory.path());
        assert!(done.status.success(), "{flags}: {done:?}");
    }
}

#[test]
fn a_runner_installs_semel_before_it_is_used() {
    let (_, from_there) = GUIDE.split_once("**Plain shell").unwrap();
    let mut seen = 0;
    for code in from_there.split("```").skip(1).step_by(2) {
        let Some(used) = code.find("semel check --config check.toml") else { continue };
        // Further steps of the workflow above, and what runs on one's own machine.
        if code.contains("sarif") || code.contains("--baseline") {
            continue;
        }
        seen += 1;
        assert!(code.find("cargo install").is_some_and(|installed| installed < used), "{code}");
    }
    assert_eq!(seen, 3, "shell, GitHub Actions and GitLab CI");
}

#[test]
fn every_case_can_be_explained() {
    let done = semel().args(["check", "--explain", "race.same"]).output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success() && said.contains("duplicates led to twenty executions"), "{said}");
    assert_eq!(semel().args(["check", "--explain", "race.none"]).output().unwrap().status.code(), Some(2));
}
