//! The binary as users run it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const TITLES: [&str; 9] = [
    "1  A first request",
    "2  The same request again",
    "3  50 at once",
    "4  The same key for another amount",
    "5  No key",
    "6  The same key from another account",
    "7  A new key for an invoice that is paid",
    "8  A client that hangs up in the middle",
    "9  A service that is killed in the middle",
];

/// What was printed of each case, and what came after the last.
fn by_case(printed: &str) -> Vec<String> {
    let mut rest = printed;
    let mut parts = Vec::new();
    for title in TITLES {
        let begins = rest.find(title).unwrap_or_else(|| panic!("{title} is missing in {printed}"));
        parts.push(rest[..begins].to_owned());
        rest = &rest[begins..];
    }
    let summary = rest.find(" of 9 cases").unwrap_or_else(|| panic!("no summary in {printed}"));
    parts.push(rest[..summary].to_owned());
    parts.remove(0);
    parts
}

#[test]
fn the_walk_comes_out_as_promised() {
    let output = semel().args(["demo", "--once"]).output().unwrap();
    let printed = out(&output);
    assert!(output.status.success(), "{printed}\n{}", err(&output));
    let cases = by_case(&printed);
    for case in &cases {
        assert!(case.contains('✓') && !case.contains('✗'), "{case}");
        assert!(case.contains("   → ") && case.contains("   ← ") && case.contains("= payments: "), "{case}");
    }
    assert!(cases[1].contains("Idempotent-Replayed: true") && cases[1].contains("(none new)"));
    assert!(cases[2].contains("49 × 409 Conflict") && cases[2].contains(" 1 × 201 Created"));
    assert!(cases[3].contains("422") && cases[4].contains("400"));
    assert!(
        cases[8].contains("idempotency_key_in_progress") && cases[8].contains("idempotency_outcome_unknown")
    );
    assert!(printed.contains("9 of 9 cases came out as promised"));
    assert!(!printed.contains('\x1b'), "colours are for terminals");
    assert!(!printed.contains('\r'), "movement is for terminals");
    let widest = printed.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?} columns");
    assert_eq!(err(&output), "");
}

#[test]
fn a_walk_that_goes_wrong_says_so_and_fails() {
    // The service's lease is not the one that the walk waits for: the last case cannot come out right.
    let output = semel().args(["demo", "--once", "--wrong-lease", "60"]).output().unwrap();
    let printed = out(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    let cases = by_case(&printed);
    assert!(cases[..8].iter().all(|case| case.contains('✓')), "{printed}");
    assert!(cases[8].contains('✗') && !cases[8].contains('✓'), "{printed}");
    let summary = &printed[printed.find("8 of 9 cases").unwrap()..];
    assert!(
        summary.contains("✗ 9  A service that is killed in the middle: after the lease: 409"),
        "{summary}"
    );
}

#[test]
fn colours_can_be_had_and_refused() {
    let output = semel().args(["demo", "--once"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(out(&output).contains('\x1b'));
    assert!(output.status.success());
}

/// The directory and the process of a running demo, from what it prints at first.
#[cfg(target_os = "linux")]
fn traces(
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
) -> (std::path::PathBuf, std::path::PathBuf) {
    let mut field = |name: &str| {
        let line = lines.find_map(|line| line.unwrap().trim().strip_prefix(name).map(str::to_owned));
        line.unwrap().trim().to_owned()
    };
    let service = field("service");
    let process = std::path::Path::new("/proc").join(service.rsplit(' ').next().unwrap());
    let database = std::path::PathBuf::from(field("store"));
    assert!(process.exists() && database.exists());
    (process, database.parent().unwrap().to_owned())
}

#[cfg(target_os = "linux")]
fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn it_goes_on_serving_until_ctrl_c_and_leaves_nothing_behind() {
    let mut demo = semel().arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let (first_process, directory) = traces(&mut lines);
    let listed = lines.find(|line| line.as_ref().unwrap().contains("sqlite3 -box")).unwrap().unwrap();
    assert!(listed.contains(directory.to_str().unwrap()));
    assert!(demo.try_wait().unwrap().is_none(), "it goes on");
    signal(demo.id(), "-INT");
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    assert!(!directory.exists(), "its files are removed");
    assert!(!first_process.exists(), "its process is gone");
    assert!(lines.any(|line| line.unwrap().contains("stopped")));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_in_the_middle_of_the_walk_leaves_nothing_behind() {
    let mut demo = semel().arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let (process, directory) = traces(&mut lines);
    signal(demo.id(), "-INT");
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert!(!directory.exists() && !process.exists());
}

#[cfg(target_os = "linux")]
#[test]
fn the_service_does_not_outlive_a_demo_that_is_killed() {
    let mut demo = semel().arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let (process, directory) = traces(&mut lines);
    demo.kill().unwrap();
    demo.wait().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while process.exists() {
        assert!(std::time::Instant::now() < deadline, "the service is still there");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_taken_default_port_is_replaced_and_a_taken_given_one_is_an_error() {
    // Somebody has the default port: we, or whoever was there before.
    let _taken = TcpListener::bind("127.0.0.1:8080");
    // A demo that is killed cannot tidy up: its files go where the test's do.
    let files = tempfile::tempdir().unwrap();
    let mut demo = semel().arg("demo").env("TMPDIR", files.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert!(first.starts_with("Port 8080 is taken: using "), "{first}");

    let given = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = given.local_addr().unwrap().to_string();
    let output = semel().args(["demo", "--once", "--listen", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    assert!(
        said.contains(&format!("cannot listen on {address}")) && said.contains("--listen 127.0.0.1:0"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn a_reader_who_has_had_enough_is_no_error() {
    let mut demo =
        semel().args(["demo", "--once"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    let mut said = String::new();
    demo.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    demo.wait().unwrap();
    assert_eq!(said, "");
}

#[test]
fn help_teaches() {
    let help = out(&semel().arg("--help").output().unwrap());
    assert!(
        help.contains("demo") && help.contains("Examples:") && help.contains("semel demo --once"),
        "{help}"
    );
    assert!(!help.contains("demo-service"), "what is for ourselves is not for users: {help}");
    let help = out(&semel().args(["help", "demo"]).output().unwrap());
    assert!(help.contains("--once") && help.contains("--listen") && help.contains("Exit status"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 90), "{help}");
}

#[test]
fn a_misspelt_command_gets_a_suggestion() {
    let output = semel().arg("dmeo").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("'demo'"), "{}", err(&output));
}

#[test]
fn it_knows_its_version() {
    let output = semel().arg("--version").output().unwrap();
    assert_eq!(out(&output).trim(), format!("semel {}", env!("CARGO_PKG_VERSION")));
}
