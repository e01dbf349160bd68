//! Flags, config file, formats, baseline, exit status.

use super::semel;
use semel_testing::faulty_api::{Fault, FaultyApi, TOKENS};
use std::path::Path;
use std::process::{Command, Output};

/// A check of an API without any idempotency, quick enough for a test.
fn check(api: &FaultyApi) -> Command {
    let mut command = semel();
    command.arg("check").arg(format!("http://{}", api.address));
    command.args(["--send", "POST /payments", "--body", r#"{"amount": 10, "reference": "r"}"#]);
    command.args(["--header", "Authorization: Bearer env:CHECK_TOKEN"]).env("CHECK_TOKEN", TOKENS[0]);
    command.args([
        "--mark",
        "/reference",
        "--count",
        "GET /payments?reference={reference}",
        "--count-at",
        "/total",
    ]);
    command.args([
        "--settle",
        "200ms",
        "--concurrency",
        "4",
        "--rounds",
        "1",
        "--only",
        "retry",
        "--only",
        "race.same",
    ]);
    command
}

async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_baseline_keeps_known_findings_from_failing_a_build() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(Some(Fault::NoIdempotency), directory.path()).await;
    let baseline = directory.path().join("known.json");
    let with = |flags: &[&str]| {
        let mut command = check(&api);
        command.args(flags).arg("--baseline").arg(&baseline);
        command
    };
    let first = run(with(&["--write-baseline"])).await;
    assert_eq!(first.status.code(), Some(1), "{first:?}");
    let said = text(&first.stdout);
    assert!(said.contains("double execution  retry") && said.contains("$CHECK_TOKEN"), "{said}");
    assert!(!said.contains(TOKENS[0]) && !said.contains('\u{1b}'), "{said}");
    assert!(text(&first.stderr).contains("at most"), "the plan is printed: {first:?}");
    let known = run(with(&[])).await;
    assert_eq!(known.status.code(), Some(0), "{known:?}");
    std::fs::remove_file(&baseline).unwrap();
    assert_eq!(run(with(&[])).await.status.code(), Some(2), "a baseline that is not there is an error");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_format_is_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(Some(Fault::NoIdempotency), directory.path()).await;
    for (format, begins, reader) in [
        ("json", "{", Some("import json,sys; json.load(open(sys.argv[1]))")),
        ("sarif", "{", Some("import json,sys; assert json.load(open(sys.argv[1]))['version'] == '2.1.0'")),
        (
            "junit",
            "<?xml",
            Some(
                "import sys, xml.etree.ElementTree as e; s = e.parse(sys.argv[1]).getroot()[0]\n\
                 assert len(s) == int(s.get('tests')) and len(s.findall('*/failure')) == int(s.get('failures')) > 0",
            ),
        ),
        ("github", "::error", None),
        ("html", "<!doctype html>", None),
        ("markdown", "### `semel check`", None),
    ] {
        let file = directory.path().join(format);
        let mut command = check(&api);
        command.args(["--format", format, "--report"]).arg(&file);
        let done = run(command).await;
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let report = std::fs::read_to_string(&file).unwrap();
        assert!(report.starts_with(begins), "{format}: {report}");
        assert!(!report.contains(TOKENS[0]) && !report.contains("](docs"), "{format}: {report}");
        assert!(format == "json" || report.contains("semel check --explain"), "{format}: {report}");
        if let Some(reader) = reader {
            let read = Command::new("python3").args(["-c", reader]).arg(&file).output().unwrap();
            assert!(read.status.success(), "{format}: {read:?}");
        }
        assert!(text(&done.stdout).contains("something bad was found"), "text goes to the terminal");
    }
}

/// Checks a document by a JSON Schema, formats such as `uri` too.
fn assert_valid(schema: &str, document: &Path) {
    const CHECK: &str = "import json, sys, jsonschema_rs\n\
        schema, document = [json.load(open(file)) for file in sys.argv[1:]]\n\
        errors = list(jsonschema_rs.validator_for(schema, validate_formats=True).iter_errors(document))\n\
        sys.exit('\\n'.join(f'{error.instance_path}: {error.message}' for error in errors[:5]) or 0)";
    let python = semel_testing::servers::python_tools().unwrap().join("bin/python3");
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../semel-check/tests").join(schema);
    let read = Command::new(python).args(["-c", CHECK]).arg(schema).arg(document).output().unwrap();
    assert!(read.status.success(), "{}: {read:?}", document.display());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_and_sarif_are_valid_by_their_schemas() {
    let directory = tempfile::tempdir().unwrap();
    for (name, fault, port) in
        [("correct", None, 0), ("faulty", Some(Fault::NoIdempotency), 0), ("gone", None, 1)]
    {
        let place = tempfile::tempdir().unwrap();
        let api = FaultyApi::start(fault, place.path()).await;
        // A name that is no URI as it stands.
        let config = directory.path().join("check [1].toml");
        let target = if port == 0 { api.address.to_string() } else { format!("127.0.0.1:{port}") };
        std::fs::write(&config, format!("target = \"http://{target}\"\nvary = \"/amount\"\n")).unwrap();
        for (format, schema) in [("json", "report.schema.json"), ("sarif", "sarif-2.1.0.schema.json")] {
            let file = directory.path().join(format!("{name}.{format}"));
            let mut command = check(&api);
            if port != 0 {
                command = semel();
                command.args(["check", "--send", "POST /payments", "--body", r#"{"amount": 1}"#]);
            }
            command.arg("--config").arg(&config);
            command.args(["--docs", "https://book.example", "--format", format, "--report"]).arg(&file);
            let done = run(command).await;
            let status = match name {
                "correct" => 0,
                "faulty" => 1,
                _ => 2,
            };
            assert_eq!(done.status.code(), Some(status), "{name}: {done:?}");
            assert_valid(schema, &file);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_config_file_says_the_same_as_flags() {
    let directory = tempfile::tempdir().unwrap();
    let api = FaultyApi::start(None, directory.path()).await;
    let config = directory.path().join("check.toml");
    std::fs::write(
        &config,
        format!(
            r#"
target = "http://{}"
send = "POST /payments"
body = '{{"amount": 10, "reference": "r"}}'
header = ["Authorization: Bearer {}"]
mark = "/reference"
count = "GET /payments?reference={{reference}}"
count-at = "/total"
settle = "200ms"
concurrency = 4
rounds = 1
only = ["retry", "race.same", "body.after"]
"#,
            api.address, TOKENS[0]
        ),
    )
    .unwrap();
    let mut command = semel();
    command.args(["check", "--config"]).arg(&config);
    let done = run(command).await;
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let dry = semel().args(["check", "--dry-run", "--config"]).arg(&config).output().unwrap();
    let said = text(&dry.stdout);
    assert!(said.contains("★ race.same") && !said.contains(TOKENS[0]), "{said}");
}

#[test]
fn what_might_do_harm_is_refused_and_nothing_is_sent() {
    for (flags, said) in [
        (&["https://api.example.com", "--send", "POST /a"][..], "--allow-host"),
        (
            &["http://127.0.0.1:1", "--send", "POST /a", "--header", "Authorization: Bearer sk_live_1"],
            "looks live",
        ),
        (&["http://127.0.0.1:1", "--send", "POST /a", "--max-effects", "3"], "--max-effects"),
        (&["http://127.0.0.1:1"], "--send"),
        (&["http://127.0.0.1:1", "--send", "POST /a"], "no answer"),
    ] {
        let output = semel().arg("check").args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let all = text(&output.stderr) + &text(&output.stdout);
        assert!(all.contains(said) && !all.contains("sk_live_1"), "{all}");
    }
    let list = semel().args(["check", "--list"]).output().unwrap();
    assert!(list.status.success() && text(&list.stdout).contains("★ race.same"), "{list:?}");
}
