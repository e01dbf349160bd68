//! The binary as users run it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

/// On a port of its own: another demo that starts while this one's gateway is down must not get it.
fn demo() -> Command {
    let mut command = semel();
    command.args(["demo", "--listen", "127.0.0.1:0"]);
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

const TITLES: [&str; 12] = [
    "1  A first request",
    "2  The same request again",
    "3  50 at once",
    "4  The same key for another amount",
    "5  No key",
    "6  The same key from another account",
    "7  A card that is declined",
    "8  A client that disconnects",
    "9  A provider that charges and disconnects",
    "10  A service that is killed",
    "11  A service that is not running",
    "12  A gateway that is killed",
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
    let summary = rest.find(" of 12 cases").unwrap_or_else(|| panic!("no summary in {printed}"));
    parts.push(rest[..summary].to_owned());
    parts.remove(0);
    parts
}

/// Files of the demo that are left in a directory which was empty before it.
fn left_in(files: &tempfile::TempDir) -> Vec<PathBuf> {
    std::fs::read_dir(files.path()).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_walk_comes_out_as_promised() {
    let files = tempfile::tempdir().unwrap();
    let output = demo().arg("--once").env("TMPDIR", files.path()).output().unwrap();
    let printed = out(&output);
    assert!(output.status.success(), "{printed}\n{}", err(&output));
    let cases = by_case(&printed);
    for case in &cases {
        assert!(case.contains('✓') && !case.contains('✗'), "{case}");
        assert!(case.contains("   → ") && case.contains("   ← "), "{case}");
        assert!(case.contains("= charges in the provider's ledger: "), "{case}");
    }
    // What each is about: the answers that must be there, and by how much the charges grew.
    for (case, grown, seen) in [
        (0, "(1 new)", &["201 Created"][..]),
        (1, "(none new)", &["201 Created  Idempotent-Replayed: true"]),
        (2, "2 (1 new)", &["49 × 409 Conflict  idempotency_key_in_progress", " 1 × 201 Created"]),
        (3, "(none new)", &["422 Unprocessable Entity  idempotency_key_reused_with_different_payload"]),
        (4, "(none new)", &["400 Bad Request  idempotency_key_missing"]),
        (5, "(1 new)", &["acct_bert", "201 Created"]),
        (6, "(none new)", &["402 Payment Required  card_declined  Idempotent-Replayed: true"]),
        (7, "(1 new)", &["201 Created  Idempotent-Replayed: true"]),
        (
            8,
            "(1 new)",
            &[
                "504 Gateway Timeout  idempotency_outcome_unknown",
                "409 Conflict",
                "operations settle",
                "201 Created",
            ],
        ),
        (9, "(1 new)", &["504 Gateway Timeout  idempotency_outcome_unknown", "409 Conflict"]),
        (10, "(1 new)", &["502 Bad Gateway  idempotency_upstream_unreachable", "201 Created"]),
        (11, "7 (none new)", &["Idempotent-Replayed: true", "409 Conflict  idempotency_outcome_unknown"]),
    ] {
        let printed = &cases[case];
        assert!(printed.contains(grown), "{printed}");
        assert!(seen.iter().all(|seen| printed.contains(seen)), "{printed}");
    }
    assert!(printed.contains("12 of 12 cases came out as promised"));
    assert!(!printed.contains('\x1b'), "colours are for terminals");
    assert!(!printed.contains('\r'), "movement is for terminals");
    let widest = printed.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?} columns");
    assert_eq!(err(&output), "");
    assert_eq!(left_in(&files), Vec::<PathBuf>::new());
}

#[test]
fn a_walk_that_goes_wrong_says_so_and_fails() {
    // The gateway is told that nothing was done where a charge may have been made: that case cannot come out right.
    let output = demo().args(["--once", "--misconfigured"]).output().unwrap();
    let printed = out(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    for (number, case) in (1..).zip(by_case(&printed)) {
        let wrong = number == 9;
        assert_eq!(case.contains('✗'), wrong, "{printed}");
        assert_eq!(case.contains('✓'), !wrong, "{printed}");
    }
    let summary = &printed[printed.find("11 of 12 cases").unwrap()..];
    let fault = "✗ 9  A provider that charges and disconnects: there are 6 charges, and there should be 5";
    assert!(summary.contains(fault), "{summary}");
}

#[test]
fn colours_can_be_had_and_refused() {
    let output = demo().arg("--once").env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(out(&output).contains('\x1b'));
    assert!(output.status.success(), "{}\n{}", out(&output), err(&output));
}

/// The directory of a running demo, from what it prints at first.
#[cfg(target_os = "linux")]
fn directory(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> PathBuf {
    let line = lines.find_map(|line| line.unwrap().trim().strip_prefix("files ").map(str::to_owned));
    let directory = PathBuf::from(line.unwrap().trim());
    for file in ["semel.toml", "semel.db", "provider.ledger"] {
        assert!(directory.join(file).exists(), "{file}");
    }
    directory
}

/// The processes that work in a directory or below it, even if it is gone by now.
#[cfg(target_os = "linux")]
fn processes_in(directory: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let works_there = |process: &PathBuf| {
        let place = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        place.to_string_lossy().starts_with(&*directory.to_string_lossy())
    };
    processes.filter(works_there).count()
}

#[cfg(target_os = "linux")]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
fn signal(process: u32, name: &str) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

/// The lines to paste that follow this heading.
#[cfg(target_os = "linux")]
fn suggestion(lines: &mut impl Iterator<Item = std::io::Result<String>>, heading: &str) -> String {
    lines.find(|line| line.as_ref().unwrap().starts_with(heading)).unwrap().unwrap();
    let pasted = lines.map(Result::unwrap).take_while(|line| !line.is_empty());
    pasted.collect::<Vec<_>>().join("\n")
}

#[cfg(target_os = "linux")]
fn paste(suggestion: &str) -> String {
    let output = Command::new("sh").args(["-c", suggestion]).output().unwrap();
    assert!(output.status.success(), "{suggestion}\n{}", err(&output));
    out(&output)
}

#[cfg(target_os = "linux")]
#[test]
fn it_goes_on_serving_until_ctrl_c_and_leaves_nothing_behind() {
    let mut demo = demo().stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let directory = directory(&mut lines);
    let killing = suggestion(&mut lines, "The service is killed, and restarts");
    let service = killing.split("kill -9 ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
    let listing = suggestion(&mut lines, "List unknown outcomes");
    let settling = suggestion(&mut lines, "Settle the unknown outcome");
    assert!(paste(&listing).contains("inv-1006"), "{}", paste(&listing));
    assert!(paste(&settling).contains("is completed now"));
    assert!(!paste(&listing).contains("inv-1006"));

    signal(service, "-KILL");
    assert!(lines.any(|line| line.unwrap().contains("the service had stopped; it runs again")));
    assert_eq!(processes_in(&directory), 3);

    assert!(demo.try_wait().unwrap().is_none(), "it goes on");
    signal(demo.id(), "-INT");
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    assert!(!directory.exists(), "its files are removed");
    assert_eq!(processes_in(&directory), 0, "its processes are gone");
    assert!(lines.any(|line| line.unwrap().contains("stopped")));
}

/// The shell commands of a page that begin with `program`, as they stand there.
#[cfg(target_os = "linux")]
fn commands(page: &str, program: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.starts_with(program)).map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn five_minutes_with_curl_go_as_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/start/curl.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(commands(&page, "semel "), ["semel demo --listen 127.0.0.1:8080\n"]);
    let [pay, lose]: [String; 2] = commands(&page, "curl ").try_into().unwrap();

    let files = tempfile::tempdir().unwrap();
    let mut demo = demo().env("TMPDIR", files.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    // The page has the default address; this demo has a port of its own, which its suggestions name.
    let suggested = suggestion(&mut lines, "Pay.");
    let address = suggested.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let ledger = suggestion(&mut lines, "The provider's own count of charges.");
    let run = |command: &str| paste(&command.replace("127.0.0.1:8080", address)).to_lowercase();
    let charges = || {
        let summary = paste(&ledger);
        let count = summary.split("\"charges\":").nth(1).unwrap_or_else(|| panic!("{summary}"));
        count.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().unwrap()
    };

    let before = charges();
    let first = run(&pay);
    assert!(first.starts_with("http/1.1 201 created") && first.contains("semel-operation-id: "), "{first}");
    let retry = run(&pay);
    assert!(retry.starts_with("http/1.1 201") && retry.contains("idempotent-replayed: true"), "{retry}");
    let other = run(&pay.replace("25.00", "99.00"));
    assert!(other.starts_with("http/1.1 422"), "{other}");
    assert!(other.contains("idempotency_key_reused_with_different_payload"), "{other}");
    for status in ["504", "409"] {
        let doubt = run(&lose);
        assert!(doubt.starts_with(&format!("http/1.1 {status}")), "{doubt}");
        assert!(doubt.contains("idempotency_outcome_unknown"), "{doubt}");
    }
    assert_eq!(charges(), before + 2, "one for each payment");

    signal(demo.id(), "-INT");
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    assert_eq!(left_in(&files), Vec::<PathBuf>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_in_the_middle_of_the_walk_leaves_nothing_behind() {
    let files = tempfile::tempdir().unwrap();
    // A pipe that is nearly full: the walk cannot come to its end before somebody reads.
    let (mut printed, mut filled) = std::io::pipe().unwrap();
    filled.write_all(&[b'\n'; 60_000]).unwrap();
    let mut demo = demo().env("TMPDIR", files.path()).stdout(filled).spawn().unwrap();
    let has_charged = || {
        let ledger = left_in(&files).into_iter().map(|directory| directory.join("provider.ledger")).next();
        ledger.and_then(|ledger| std::fs::metadata(ledger).ok()).is_some_and(|ledger| ledger.len() > 0)
    };
    wait_until("the walk begins", has_charged);
    signal(demo.id(), "-INT");
    printed.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(130));
    assert_eq!(left_in(&files), Vec::<PathBuf>::new());
    assert_eq!(processes_in(files.path()), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_outlives_a_demo_that_is_killed() {
    // It cannot tidy up: its files go where the test's do.
    let files = tempfile::tempdir().unwrap();
    let mut demo = demo().env("TMPDIR", files.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    directory(&mut lines);
    suggestion(&mut lines, "Pay.");
    assert_eq!(processes_in(files.path()), 3);
    demo.kill().unwrap();
    demo.wait().unwrap();
    wait_until("the processes end with the demo", || processes_in(files.path()) == 0);
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
    let mut demo = demo().arg("--once").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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
    assert!(!help.contains("demo-part"), "what is for ourselves is not for users: {help}");
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
