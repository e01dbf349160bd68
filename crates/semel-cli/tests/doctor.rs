//! `semel doctor` as operators run it, on stores that are well and on stores that are not.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong here is a failed test"
)]

use semel_testing::servers::{Cluster, Installed};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const UPSTREAM: &str = "upstream = \"http://127.0.0.1:9\"\n[scope]\ntenant = [\"header:x-account\"]\ntrusted_peers = [\"127.0.0.1\"]\n";

/// Runs it in this directory; the exit status, and the findings by name.
#[track_caller]
fn doctor(directory: &Path, config: &str, arguments: &[&str]) -> (i32, Findings) {
    fs::write(directory.join("semel.toml"), config).unwrap();
    let mut semel = Command::new(env!("CARGO_BIN_EXE_semel"));
    let semel = semel.current_dir(directory).args(["doctor", "--format", "json"]).args(arguments);
    let output = semel.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let found = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code().unwrap(), Findings(found))
}

struct Findings(Value);

impl Findings {
    /// How bad it is, and what was found and is to be done.
    #[track_caller]
    fn of(&self, check: &str) -> (&str, String) {
        let all = self.0["findings"].as_array().unwrap();
        let found = all.iter().find(|finding| finding["check"] == check);
        let found = found.unwrap_or_else(|| panic!("{check} was not checked: {:#}", self.0));
        let help = found["help"].as_str().unwrap_or_default();
        (found["severity"].as_str().unwrap(), format!("{}; {help}", found["found"].as_str().unwrap()))
    }

    #[track_caller]
    fn is(&self, check: &str, severity: &str, words: &str) {
        let (found, said) = self.of(check);
        assert_eq!(found, severity, "{check}: {said}");
        assert!(said.contains(words), "{check}: {said}");
    }
}

fn sqlite() -> String {
    format!("store = \"sqlite:semel.db\"\n{UPSTREAM}")
}

/// A file with the tables, as the gateway makes it.
fn made(directory: &Path) {
    let mut semel = Command::new(env!("CARGO_BIN_EXE_semel"));
    let made = semel.current_dir(directory).args(["migrate", "--store", "sqlite:semel.db"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn a_file_that_is_well_has_nothing_wrong() {
    let directory = tempfile::tempdir().unwrap();
    made(directory.path());
    let (status, found) = doctor(directory.path(), &sqlite(), &[]);
    for check in
        ["store.opens", "sqlite.files", "sqlite.wal", "records.readable", "operations.declared", "worker"]
    {
        found.is(check, "fine", "");
    }
    found.of("sqlite.disk");
    found.of("clock");
    assert_eq!(status, 0, "{:#}", found.0);
}

#[test]
fn a_file_that_is_missing_or_open_to_others_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let (status, found) = doctor(directory.path(), &sqlite(), &[]);
    found.is("store.opens", "wrong", "semel.db does not exist");
    assert_eq!(status, 1);
    made(directory.path());
    fs::set_permissions(directory.path().join("semel.db"), fs::Permissions::from_mode(0o644)).unwrap();
    let (status, found) = doctor(directory.path(), &sqlite(), &[]);
    found.is("sqlite.files", "wrong", "chmod 600");
    assert_eq!(status, 1);
}

#[test]
fn a_store_in_memory_is_wrong_and_a_bad_file_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    let (status, found) = doctor(directory.path(), &format!("store = \"memory:\"\n{UPSTREAM}"), &[]);
    found.is("store.durable", "wrong", "a restart forgets every key");
    assert_eq!(status, 1);
    fs::write(
        directory.path().join("semel.toml"),
        "[store]\nurl = \"sqlite:semel.db\"\nreplication = \"storage\"\n",
    )
    .unwrap();
    let mut semel = Command::new(env!("CARGO_BIN_EXE_semel"));
    let output = semel.current_dir(directory.path()).arg("doctor").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("semel.toml:3:15") && said.contains("`replication` is about PostgreSQL"), "{said}");
}

/// Runs a script on the server, and gives back what it printed.
fn psql(server: &Cluster, script: &str) -> String {
    let mut psql = Installed::find().unwrap().program("psql").unwrap();
    psql.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-f", "-"]).arg(server.url("postgres"));
    let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    psql.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_server_is_looked_at_from_its_settings_to_its_records() {
    let server = Cluster::start(&["max_connections = 20", "track_counts = on"]).unwrap();
    let url = server.url("postgres");
    let directory = tempfile::tempdir().unwrap();
    let config =
        format!("store = \"{url}\"\n{UPSTREAM}[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n");
    // Nothing is migrated.
    let (status, found) = doctor(directory.path(), &config, &[]);
    found.is("store.opens", "wrong", "run `semel migrate`");
    assert_eq!(status, 1);
    assert_eq!(psql(&server, "SELECT count(*) FROM pg_class WHERE relname = 'semel_records'").trim(), "0");

    let mut migrate = Command::new(env!("CARGO_BIN_EXE_semel"));
    assert!(migrate.args(["migrate", "--store", &url]).status().unwrap().success());
    let (status, found) = doctor(directory.path(), &config, &[]);
    for check in [
        "store.opens",
        "postgres.slots",
        "postgres.transactions",
        "postgres.timeouts",
        "postgres.outbox_privileges",
        "postgres.bloat",
        "postgres.wraparound",
        "records.readable",
        "operations.declared",
        "worker",
        "records.doubt",
    ] {
        found.is(check, "fine", "");
    }
    found.is("postgres.replication", "risky", "no standby follows");
    found.is("postgres.connections", "risky", "raise max_connections");
    assert_eq!(status, 0, "{:#}", found.0);
    assert_eq!(doctor(directory.path(), &config, &["--strict"]).0, 1);

    // What is due since the epoch, of an operation that no route has, and cannot be read.
    let records = "INSERT INTO semel_records (key_hash, operation_id, tenant, operation, key, fingerprint, recipe, owner, created_at, lease_until,
        due_at, due_kind, state, version, attempt, taken_by, reconcile_attempts, dead_letter)
      SELECT gen_random_uuid(), gen_random_uuid(), 'a', 'refund', 'key-' || n, decode(repeat('00', 32), 'hex'), gen_random_uuid(), gen_random_uuid(), 1, 1,
        1, 'lease', 'in_progress', 1, 1, 'first', 0, false FROM generate_series(1, 3) n;
      ALTER TABLE semel_records SET (autovacuum_enabled = false);
      ALTER ROLE postgres SET statement_timeout = 500;
      SELECT pg_create_physical_replication_slot('gone');";
    psql(&server, records);
    let (status, found) = doctor(directory.path(), &config, &[]);
    found.is("store.opens", "wrong", "dangerously_accept_asynchronous_replication");
    assert_eq!(status, 1);
    let config = format!(
        "{UPSTREAM}[[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n[store]\nurl = \"{url}\"\nreplication = \"none\"\n"
    );
    let (status, found) = doctor(directory.path(), &config, &[]);
    found.is("postgres.bloat", "wrong", "autovacuum is off for semel_records");
    found.is("postgres.timeouts", "risky", "statement_timeout = 500ms");
    found.is("operations.declared", "risky", "refund");
    found.is("worker", "wrong", "leases to be looked at");
    assert_eq!(status, 1);
}
