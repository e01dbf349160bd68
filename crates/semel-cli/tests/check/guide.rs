//! The commands of the guide are commands: each is taken apart as a user's would be, and nothing is sent.

use super::semel;
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
    assert!(done.status.success() && said.contains("Twenty duplicates at once"), "{said}");
    assert_eq!(semel().args(["check", "--explain", "race.none"]).output().unwrap().status.code(), Some(2));
}
