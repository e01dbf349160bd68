//! `semel operations` as operators run it, against an admin API on a socket.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use semel::{Engine, MemoryStore, OperationId, Policy, RecordKey, Settling, State, When};
use semel_conformance::samples::in_state;
use semel_gateway::Secret;
use semel_gateway::admin::{self, Admin};
use semel_gateway::metrics::Metrics;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output};
use std::sync::Arc;
use tokio::runtime::Runtime;

const TOKEN: &str = "the-admin-token";

/// An admin API, for as long as it lives.
struct AdminApi {
    address: SocketAddr,
    engine: Engine,
    runtime: Runtime,
}

impl AdminApi {
    fn open(token: Option<&str>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let engine = Engine::new(MemoryStore::new());
        let mut admin = Admin::new(engine.clone(), Arc::new(Metrics::new(["create_payment"])));
        admin.people.token = token.map(|token| Secret::new(token).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            admin::serve(listener, admin, std::future::pending()).await.unwrap();
        });
        Self { address, engine, runtime }
    }

    fn insert(&self, state: State, key: &str, change: impl FnOnce(&mut semel::Draft)) -> OperationId {
        let mut draft = in_state(state, RecordKey::new("acme", "create_payment", key));
        change(&mut draft);
        let id = draft.operation_id;
        self.runtime.block_on(self.engine.store().create(&draft)).unwrap();
        id
    }

    /// An operation in doubt, with a history that says so.
    fn doubtful(&self, key: &str) -> OperationId {
        let id = self.insert(State::InProgress, key, |_| {});
        let record = self.record(id);
        let claim = semel::transition::Claim::of(&record);
        let doubt = semel::transition::Act::Doubt { error: "timeout".into(), settling: Settling::Webhook };
        let change = semel::transition::act(&record, &claim, &doubt).unwrap();
        let semel::transition::Change::Put { next, history } = change else { panic!("doubt is written") };
        let swap = semel::Swap { expected: record.expected(), next, history };
        self.runtime.block_on(self.engine.store().swap(&swap)).unwrap();
        id
    }

    fn record(&self, id: OperationId) -> semel::Record {
        self.runtime.block_on(self.engine.find(id)).unwrap().1.unwrap()
    }

    fn operations(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = semel();
        command.arg("operations").args(arguments).args(["--admin", &format!("http://{}", self.address)]);
        command.env("SEMEL_ADMIN_TOKEN", TOKEN);
        command
    }
}

fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "SEMEL_ADMIN", "SEMEL_ADMIN_TOKEN"] {
        command.env_remove(name);
    }
    command.env("USER", "ada");
    command
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{} {}", out(output), err(output)))
}

#[test]
fn a_list_is_a_table_for_people_and_json_for_programs() {
    let admin = AdminApi::open(Some(TOKEN));
    let doubtful = admin.doubtful("key-of-the-doubtful-1");
    let done = admin.insert(State::Completed, "key-of-the-done-00001", |draft| {
        draft.times.created = When::At(semel::Timestamp::from_millis(0));
    });
    let dead = admin.insert(State::Unknown, "key-of-the-dead-00001", |draft| draft.dead_letter = true);
    let listed = admin.operations(&["list"]);
    assert_eq!(listed.status.code(), Some(0), "{}", err(&listed));
    let printed = out(&listed);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 4, "{printed}");
    assert!(lines[0].starts_with("OPERATION ID"));
    let keys = lines[0].find("KEY").unwrap();
    for (line, (id, state, key)) in lines[1..].iter().zip([
        (dead, "unknown, dead letter", "key-of-t…"),
        (done, "completed", "key-of-t…"),
        (doubtful, "unknown", "key-of-t…"),
    ]) {
        assert!(line.starts_with(&id.to_string()) && line.contains(state), "{line}");
        assert_eq!(line.find(key), Some(keys), "the columns are aligned: {printed}");
    }
    assert!(lines[2].contains("d ago") && lines[3].ends_with("timeout"), "{printed}");
    assert!(!printed.contains('\x1b'), "colours are for terminals");
    assert_eq!(err(&listed), "");

    let page = json(&admin.operations(&["list", "--state", "unknown", "--dead-letter=false", "--json"]));
    assert_eq!(page["operations"].as_array().unwrap().len(), 1);
    assert_eq!(page["operations"][0]["operation_id"], doubtful.to_string());
    let page = json(&admin.operations(&["list", "--dead-letter", "--json"]));
    assert_eq!(page["operations"][0]["operation_id"], dead.to_string());
    let coloured = admin.command(&["list"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    assert!(out(&coloured).contains('\x1b'));
}

#[test]
fn pages_lead_on_to_the_end() {
    let admin = AdminApi::open(Some(TOKEN));
    for number in 0..7 {
        admin.insert(State::Completed, &format!("key-of-number-{number:07}"), |_| {});
    }
    let first = admin.operations(&["list", "--limit", "3"]);
    assert_eq!(out(&first).lines().count(), 4);
    let said = err(&first);
    let cursor = said.split("--cursor ").nth(1).unwrap().split(',').next().unwrap();
    let second = admin.operations(&["list", "--limit", "3", "--cursor", cursor]);
    assert_eq!(out(&second).lines().count(), 4);
    assert_ne!(out(&first), out(&second));
    let all = admin.operations(&["list", "--limit", "3", "--all", "--json"]);
    let pages: Vec<Value> = out(&all).lines().map(|page| serde_json::from_str(page).unwrap()).collect();
    let sizes: Vec<usize> = pages.iter().map(|page| page["operations"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [3, 3, 1]);
    let none = admin.operations(&["list", "--tenant", "nobody"]);
    assert_eq!((none.status.code(), out(&none).as_str()), (Some(0), ""));
    assert!(err(&none).contains("No operation matches"));
}

#[test]
fn filters_go_as_they_are_meant() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.insert(State::Completed, "a&b=c d/é", |draft| draft.key.tenant = "x y".into());
    admin.insert(State::Completed, "another-key-00000001", |_| {});
    for filter in [["--key", "a&b=c d/é"], ["--tenant", "x y"]] {
        let page = json(&admin.operations(&["list", "--json", filter[0], filter[1]]));
        assert_eq!(page["operations"].as_array().unwrap().len(), 1, "{filter:?}");
        assert_eq!(page["operations"][0]["operation_id"], id.to_string());
    }
}

#[test]
fn an_operation_is_shown_whole_and_says_what_to_do() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-doubtful-1").to_string();
    let shown = admin.operations(&["show", &id]);
    assert_eq!(shown.status.code(), Some(0), "{}", err(&shown));
    let printed = out(&shown);
    for part in ["unknown", "acme", "create_payment", "key-of-t…", "doubted", "owner", "timeout"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(!printed.contains("key-of-the-doubtful-1"), "{printed}");
    let printed_whole = out(&admin.operations(&["show", &id, "--full-key"]));
    assert!(printed_whole.contains("key-of-the-doubtful-1"), "{printed_whole}");
    for outcome in ["completed", "failed --attempt 1", "not_executed --attempt 1"] {
        let command =
            format!("semel operations settle {id} --admin http://{} --outcome {outcome} ", admin.address);
        assert!(printed.contains(&command), "{command}: {printed}");
    }
    let document = json(&admin.operations(&["show", &id, "--json"]));
    assert_eq!(document["history"][0]["happening"], "doubted");

    let done = admin.insert(State::Completed, "key-of-the-done-00001", |_| {}).to_string();
    let printed = out(&admin.operations(&["show", &done]));
    assert!(printed.contains("201, body of 5 bytes, headers: content-type, location"), "{printed}");
    assert!(printed.contains("payment/pay_1") && !printed.contains("settle"), "{printed}");
}

/// The commands that `show` prints, each as it would be copied, with `…` replaced.
fn printed_commands(admin: &AdminApi, id: &str, filled_in: &str) -> Vec<String> {
    let shown = admin.command(&["show", id]).output().unwrap();
    let printed = out(&shown).replace(" \\\n", " ");
    let commands = printed.lines().map(str::trim).filter(|line| line.starts_with("semel operations settle"));
    commands.map(|command| command.replace('…', filled_in)).collect()
}

#[cfg(unix)]
#[test]
fn each_printed_command_settles_as_it_says_once_it_is_pasted() {
    let admin = AdminApi::open(Some(TOKEN));
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_semel")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for (number, (state, status, body)) in [
        (State::Completed, Some(201), r#"{"id": "pay_1"}"#),
        (State::FailedReplayable, Some(402), r#"{"error": "pay_1"}"#),
        (State::FailedRetryable, None, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let id = admin.doubtful(&format!("key-of-the-doubtful-{number}"));
        let commands = printed_commands(&admin, &id.to_string(), "pay_1");
        assert_eq!(commands.len(), 3, "{commands:#?}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &commands[number]]).env("PATH", &path).env("SEMEL_ADMIN_TOKEN", TOKEN);
        let pasted = shell.output().unwrap();
        assert_eq!(pasted.status.code(), Some(0), "{}: {}", commands[number], err(&pasted));
        let record = admin.record(id);
        assert_eq!(record.state, state, "{}", commands[number]);
        let response = record.response.map(|response| (response.status, response.body));
        assert_eq!(response, status.map(|status| (status, semel::Body::Stored(body.into()))));
    }
}

#[test]
fn words_of_others_cannot_move_the_cursor() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.insert(State::Unknown, "key-of-the-wicked-001", |draft| {
        draft.last_error = Some("\x1b[2J\x07gone".into());
    });
    for arguments in [&["list"][..], &["show", &id.to_string()]] {
        let printed = out(&admin.operations(arguments));
        assert!(!printed.contains('\x1b') && printed.contains("\\u{1b}[2J"), "{printed}");
    }
}

#[test]
fn an_outcome_is_resolved_with_a_response_and_a_reason() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-doubtful-1");
    let resolved = admin.operations(&[
        "settle",
        &id.to_string(),
        "--outcome",
        "completed",
        "--reason",
        "the bank has it",
        "--status",
        "201",
        "--body",
        r#"{"id":"pay_1"}"#,
        "--content-type",
        "application/json",
        "--resource",
        "payment/pay_1",
    ]);
    assert_eq!(resolved.status.code(), Some(0), "{}", err(&resolved));
    assert_eq!(out(&resolved), format!("{id} is completed now.\n"));
    let record = admin.record(id);
    assert_eq!(record.state, State::Completed);
    let response = record.response.unwrap();
    assert_eq!(response.status, 201);
    assert_eq!(response.body, semel::Body::Stored(r#"{"id":"pay_1"}"#.into()));
    assert_eq!(response.headers, [("content-type".into(), "application/json".into())]);
    assert_eq!(record.resource.unwrap().id, "pay_1");
    let document = json(&admin.operations(&["show", &id.to_string(), "--json"]));
    let line = &document["history"][1];
    assert_eq!((&line["actor"], &line["note"]), (&"operator:token:admin".into(), &"the bank has it".into()));
}

#[test]
fn a_response_comes_from_a_file_too_and_json_is_the_apis() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-doubtful-1");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("declined.json");
    std::fs::write(
        &file,
        r#"{"status": 402, "headers": {"content-type": "text/plain"}, "body_base64": "AP8="}"#,
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let arguments =
        ["--outcome", "failed", "--attempt", "1", "--reason", "declined", "--response-file", file, "--json"];
    let resolved = admin.operations(&[&["settle", &id.to_string()][..], &arguments].concat());
    assert_eq!(resolved.status.code(), Some(0), "{}", err(&resolved));
    assert_eq!(json(&resolved)["state"], "failed_replayable");
    assert_eq!(admin.record(id).response.unwrap().body, semel::Body::Stored(vec![0, 255].into()));
}

#[test]
fn too_late_and_not_there_are_refusals_that_say_which() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.insert(State::Completed, "key-of-the-done-00001", |_| {}).to_string();
    let not_executed = ["--outcome", "not_executed", "--attempt", "1", "--reason", "never seen"];
    let late = admin.operations(&[&["settle", &id][..], &not_executed].concat());
    assert_eq!(late.status.code(), Some(1));
    let said = err(&late);
    assert!(said.contains("Only unknown outcomes can be settled"), "{said}");
    assert!(said.contains("It is now: completed (attempt 1, version 1)"), "{said}");
    let late = admin.operations(&[&["settle", &id, "--json"][..], &not_executed].concat());
    assert_eq!((late.status.code(), &json(&late)["operation"]["state"]), (Some(1), &"completed".into()));

    let nobodys = OperationId::random().to_string();
    for arguments in [vec!["show", &nobodys], [&["settle", &nobodys][..], &not_executed].concat()] {
        let gone = admin.operations(&arguments);
        assert_eq!(gone.status.code(), Some(1));
        assert!(err(&gone).contains("No operation has this id"), "{}", err(&gone));
    }
}

#[test]
fn a_missing_or_wrong_token_is_a_refusal_that_says_what_to_set() {
    let admin = AdminApi::open(Some(TOKEN));
    for token in [None, Some("wrong")] {
        let mut command = admin.command(&["list"]);
        match token {
            Some(token) => command.env("SEMEL_ADMIN_TOKEN", token),
            None => command.env_remove("SEMEL_ADMIN_TOKEN"),
        };
        let refused = command.output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
        assert!(err(&refused).contains("SEMEL_ADMIN_TOKEN"), "{}", err(&refused));
    }
    let mut command = admin.command(&["list", "--token", "env:MY_TOKEN"]);
    let given = command.env_remove("SEMEL_ADMIN_TOKEN").env("MY_TOKEN", TOKEN).output().unwrap();
    assert_eq!(given.status.code(), Some(0), "{}", err(&given));

    let open = AdminApi::open(None);
    let id = open.doubtful("key-of-the-doubtful-1").to_string();
    assert_eq!(open.operations(&["list"]).status.code(), Some(0), "this machine may read");
    let refused = open.operations(&["settle", &id, "--outcome", "failed", "--attempt", "1", "--reason", "x"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("[admin] token"), "{}", err(&refused));
}

#[test]
fn mistakes_are_told_from_refusals_and_from_silence() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-doubtful-1").to_string();
    for arguments in [
        vec!["list", "--state", "done"],
        vec!["list", "--limit", "0"],
        vec!["list", "--cursor", "zzz"],
        vec!["show", "../../etc"],
        vec!["show", "17"],
        vec!["settle", &id, "--outcome", "completed"],
        vec!["settle", &id, "--outcome", "done", "--reason", "x"],
        vec!["settle", &id, "--outcome", "failed", "--reason", "x"],
        vec!["settle", &id, "--outcome", "not_executed", "--reason", "x", "--json"],
        vec!["settle", &id, "--outcome", "completed", "--reason", "  "],
        vec!["settle", &id, "--outcome", "completed", "--reason", "x", "--body", "without a status"],
        vec!["settle", &id, "--outcome", "completed", "--reason", "x", "--status", "99"],
        vec!["settle", &id, "--outcome", "completed", "--reason", "x", "--resource", "pay_1"],
        vec!["settle", &id, "--outcome", "completed", "--reason", "x", "--response-file", "/no/such/file"],
    ] {
        let mistaken = admin.operations(&arguments);
        assert_eq!(mistaken.status.code(), Some(2), "{arguments:?}: {}", err(&mistaken));
        assert_ne!(err(&mistaken), "");
    }
    assert_eq!(admin.record(id.parse().unwrap()).state, State::Unknown);

    // A port that was free a moment ago.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silence =
        semel().args(["operations", "list", "--admin", &format!("http://{nobody}")]).output().unwrap();
    assert_eq!(silence.status.code(), Some(3));
    let said = err(&silence);
    assert!(said.contains(&format!("no admin API at http://{nobody}")) && said.contains("--admin"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// A terminal, by the tool that records them.
#[cfg(target_os = "linux")]
fn on_a_terminal(admin: &AdminApi, line: &str, typed: &str) -> (Option<i32>, String) {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut script = Command::new("script")
        .args(["--quiet", "--return", "--command", line, "/dev/null"])
        .env("SEMEL_ADMIN_TOKEN", TOKEN)
        .env("SEMEL_ADMIN", format!("http://{}", admin.address))
        .env("USER", "ada")
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = script.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    // Kept open: an end of the input would be typed as one.
    let output = script.wait_with_output().unwrap();
    drop(stdin);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_it_asks_before_it_changes_anything() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-doubtful-1");
    let binary = env!("CARGO_BIN_EXE_semel");
    let line =
        format!("{binary} operations settle {id} --outcome not_executed --attempt 1 --reason never-seen");
    let (code, printed) = on_a_terminal(&admin, &line, "n\n");
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("Settle it as not_executed?") && printed.contains("nothing was changed"),
        "{printed}"
    );
    assert!(printed.contains("key-of-t…"), "it shows what it is about: {printed}");
    assert_eq!(admin.record(id).state, State::Unknown);
    // Nobody can tell whether the attempt that is shown is the one that was looked into.
    let (code, printed) = on_a_terminal(&admin, &line.replace("--attempt 1", ""), "y\n");
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("--attempt 1") && !printed.contains("[y/N]"), "{printed}");
    assert_eq!(admin.record(id).state, State::Unknown);
    let (code, printed) = on_a_terminal(&admin, &line, "y\n");
    assert_eq!(code, Some(0), "{printed}");
    assert_eq!(admin.record(id).state, State::FailedRetryable);

    let id = admin.doubtful("key-of-the-doubtful-2");
    let line = format!(
        "{binary} operations settle {id} --outcome not_executed --attempt 1 --reason never-seen --yes"
    );
    let (code, printed) = on_a_terminal(&admin, &line, "");
    assert_eq!(code, Some(0), "{printed}");
    assert!(!printed.contains("[y/N]"), "{printed}");
}

#[test]
fn help_teaches() {
    for (command, parts) in [
        (&["operations"][..], &["list", "show", "settle", "Exit status"][..]),
        (&["operations", "list"], &["--state", "--dead-letter", "Examples:"]),
        (&["operations", "show"], &["Semel-Operation-Id", "Examples:"]),
        (&["operations", "settle"], &["not_executed", "--reason", "Examples:", "cannot be undone"]),
    ] {
        let output =
            semel().args(command).arg("--help").env("SEMEL_ADMIN_TOKEN", "secret-token").output().unwrap();
        let help = out(&output);
        for part in parts {
            assert!(help.contains(part), "{part}: {help}");
        }
        assert!(!help.contains("secret-token"));
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
    }
}

#[test]
fn a_settled_outcome_is_kept_for_a_whole_window() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-doubtful-1");
    let resolved = admin.operations(&[
        // The command's name in earlier versions.
        "resolve",
        &id.to_string(),
        "--outcome",
        "failed",
        "--attempt",
        "1",
        "--reason",
        "declined",
    ]);
    assert_eq!(resolved.status.code(), Some(0));
    let times = admin.record(id).times;
    let kept = times.expires.unwrap().after(times.completed.unwrap());
    assert_eq!(kept, Policy::default().retention);
}

#[test]
fn what_strangers_chose_is_shown_and_does_not_change_how_the_rest_is_shown() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.insert(State::Completed, "key\u{202e}100\u{200b}\u{9b}31m", |_| {}).to_string();
    for (arguments, rest) in
        [(&["list"][..], ("…", "")), (&["show", &id, "--full-key"], (r"\u{9b}31m", r"\u009b31m"))]
    {
        let shown = admin.operations(arguments);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains(&format!(r"key\u{{202e}}100\u{{200b}}{}", rest.0)), "{shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{200b}', '\u{9b}']), "{shown:?}");
        let json = admin.operations(&[arguments, &["--json"]].concat());
        let json = String::from_utf8(json.stdout).unwrap();
        assert!(json.contains(&format!(r"key\u202e100\u200b{}", rest.1)), "{json:?}");
        assert!(!json.contains(['\u{202e}', '\u{200b}', '\u{9b}']), "{json:?}");
    }
}

/// One line of a file of settlements.
fn settlement(admin: &AdminApi, id: OperationId) -> String {
    let record = admin.record(id);
    serde_json::json!({"operation_id": id.to_string(), "outcome": "completed", "reason": "in the bank's file",
        "attempt": record.attempt, "version": record.version})
    .to_string()
}

#[test]
fn many_are_settled_from_a_file_and_a_second_run_goes_on_where_the_first_one_stopped() {
    let admin = AdminApi::open(Some(TOKEN));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settlements.jsonl");
    let ids: Vec<_> = (0..45).map(|number| admin.doubtful(&format!("key-of-the-many-{number:05}"))).collect();
    let lines: Vec<String> = ids.iter().map(|id| settlement(&admin, *id)).collect();
    std::fs::write(&file, lines[..25].join("\n")).unwrap();
    let name = file.to_str().unwrap();
    let first = admin.operations(&["settle", "--many", name]);
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    assert_eq!(out(&first).lines().filter(|line| line.ends_with("  settled")).count(), 25, "{}", out(&first));
    assert!(err(&first).contains("20 of 25: 20 settled, 0 refused"), "{}", err(&first));
    // One moves on meanwhile; the file has grown.
    let moved =
        admin.operations(&["settle", &ids[30].to_string(), "--outcome", "completed", "--reason", "seen"]);
    assert_eq!(moved.status.code(), Some(0), "{}", err(&moved));
    std::fs::write(&file, lines.join("\n")).unwrap();
    let second = admin.operations(&["settle", "--many", name, "--json"]);
    assert_eq!(second.status.code(), Some(1), "one was refused: {}", err(&second));
    assert!(err(&second).contains("25 of 45 are done already."), "{}", err(&second));
    let results: Vec<Value> = out(&second).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 20);
    assert_eq!(results[5]["code"], "admin_other_version");
    assert!(ids.iter().all(|id| admin.record(*id).state == State::Completed));
    let third = admin.operations(&["settle", "--many", name]);
    assert_eq!((third.status.code(), out(&third).as_str()), (Some(1), ""), "{}", err(&third));
    for (text, said) in [
        ("", "it is empty"),
        ("{}", "line 1: `operation_id` is missing"),
        (&format!("{}\n{}", lines[0], lines[0]), "is named twice"),
    ] {
        std::fs::write(&file, text).unwrap();
        let wrong = admin.operations(&["settle", "--many", name]);
        assert_eq!(wrong.status.code(), Some(2), "{text}");
        assert!(err(&wrong).contains(said), "{}", err(&wrong));
    }
}

#[test]
fn the_audit_is_a_table_for_people_and_json_for_programs() {
    let admin = AdminApi::open(Some(TOKEN));
    let id = admin.doubtful("key-of-the-audited-01").to_string();
    let settled = admin.operations(&[
        "settle",
        &id,
        "--outcome",
        "completed",
        "--reason",
        "a\u{202e}b",
        "--ticket",
        "OPS-1",
    ]);
    assert_eq!(settled.status.code(), Some(0), "{}", err(&settled));
    let audit = |arguments: &[&str]| {
        let mut command = semel();
        command.arg("audit").args(arguments).args(["--admin", &format!("http://{}", admin.address)]);
        command.env("SEMEL_ADMIN_TOKEN", TOKEN).output().unwrap()
    };
    let table = audit(&["--action", "settle"]);
    let printed = out(&table);
    assert_eq!(printed.lines().count(), 2, "{printed}{}", err(&table));
    for part in ["token:admin", "settle", "done, completed", &id, "acme", "a\\u{202e}b"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    let entry = &json(&audit(&["--json", "--target", &id]))["entries"][0];
    assert_eq!(
        (&entry["via"], &entry["ticket"], &entry["note"]),
        (&"cli".into(), &"OPS-1".into(), &"claims to be ada".into())
    );
    let none = audit(&["--actor", "token:nobody"]);
    assert_eq!((none.status.code(), err(&none).as_str()), (Some(0), "No entry matches.\n"));
    assert_eq!(audit(&["--action", "did"]).status.code(), Some(2));
}

#[test]
fn old_doubt_is_listed_oldest_first_and_polled_where_a_poll_is_configured() {
    let admin = AdminApi::open(Some(TOKEN));
    let old = |at: i64| {
        move |draft: &mut semel::Draft| draft.times.created = When::At(semel::Timestamp::from_millis(at))
    };
    let first = admin.insert(State::Unknown, "key-of-the-first-0001", old(1_000));
    let second = admin.insert(State::Unknown, "key-of-the-second-001", old(2_000));
    admin.doubtful("key-of-the-young-0001");
    let listed =
        admin.operations(&["list", "--state", "unknown", "--older-than", "10m", "--oldest", "--json"]);
    let operations = json(&listed)["operations"].clone();
    let ids: Vec<_> = operations.as_array().unwrap().iter().map(|one| one["operation_id"].clone()).collect();
    assert_eq!(ids, [first.to_string(), second.to_string()]);
    let polled = admin.operations(&["poll", &first.to_string()]);
    assert_eq!(polled.status.code(), Some(1));
    assert!(err(&polled).contains("No poll is configured"), "{}", err(&polled));
}
