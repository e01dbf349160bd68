//! `semel migrate` as users run it, on a real server.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "what goes wrong here is a failed test"
)]

use semel_postgres::{OpenError, PgOptions, PgStore, migration_script, migrations};
use semel_testing::servers::{Installed, Server};
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

fn semel<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.args(arguments).env_remove("SEMEL_STORE");
    command
}

/// Runs it; what it said on either side. It has to end with this status.
#[track_caller]
fn ends(command: &mut Command, status: i32) -> (String, String) {
    let Output { status: ended, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(ended.code(), Some(status), "{out}\n{err}");
    (out, err)
}

/// An empty database; its URL.
fn database(name: &str) -> String {
    let url = Server::Postgres.url();
    let name = format!("semel_cli_test_{}_{name}", std::process::id());
    psql(&url, &format!("DROP DATABASE IF EXISTS {name}"));
    psql(&url, &format!("CREATE DATABASE {name} TEMPLATE template0"));
    format!("{}/{name}", url.rsplit_once('/').unwrap().0)
}

/// Runs a script as a person would, and gives back what it printed.
#[track_caller]
fn psql(url: &str, script: &str) -> String {
    let mut psql = Installed::find().unwrap().program("psql").unwrap();
    psql.args(["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-f", "-"]).arg(url);
    let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    psql.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn newest() -> i64 {
    migrations().last().unwrap().version
}

async fn open(url: &str) -> Result<PgStore, OpenError> {
    PgOptions::new().without_migrating().connect(url).await
}

#[tokio::test]
async fn an_empty_database_gets_the_tables_and_the_second_time_there_is_nothing_to_do() {
    let url = database("empty");
    let refused = open(&url).await;
    assert!(matches!(refused, Err(OpenError::NotMigrated { found: 0, .. })), "{refused:?}");
    let (said, _) = ends(&mut semel(["migrate", "--store", &url]), 0);
    assert_eq!(said, format!("Created the tables, version {}.\n", newest()));
    let (said, _) = ends(semel(["migrate"]).env("SEMEL_STORE", &url), 0);
    assert_eq!(said, format!("Nothing to do: the tables have the newest version, {}.\n", newest()));
    open(&url).await.unwrap();
}

#[tokio::test]
async fn the_printed_sql_can_be_run_by_hand_and_again() {
    let (script, warnings) = ends(&mut semel(["migrate", "--print"]), 0);
    assert_eq!((&*script, &*warnings), (&*migration_script(), ""), "the script and nothing else");
    let url = database("by_hand");
    for _ in 0..2 {
        psql(&url, &script);
    }
    // A tool for migrations puts a transaction around it, and does away with all of it when it rolls back.
    let other = database("by_a_tool");
    psql(&other, &format!("BEGIN;\n{script}\nROLLBACK;"));
    assert_eq!(psql(&other, "SELECT count(*) FROM pg_class WHERE relname LIKE 'semel%'"), "0\n");
    psql(&other, &format!("BEGIN;\n{script}\nCOMMIT;"));
    for url in [&url, &other] {
        open(url).await.unwrap();
        let (said, _) = ends(&mut semel(["migrate", "--store", url]), 0);
        assert!(said.starts_with("Nothing to do"), "{said}");
    }
}

#[test]
fn tables_of_a_newer_version_are_left_alone_or_refused() {
    let url = database("newer");
    ends(&mut semel(["migrate", "--store", &url]), 0);
    psql(&url, "UPDATE semel_meta SET value = value + 1 WHERE name = 'schema_version'");
    let (said, _) = ends(&mut semel(["migrate", "--store", &url]), 0);
    assert!(said.contains("newer than this program") && said.contains("can work with it"), "{said}");
    let alone = "UPDATE semel_meta SET value = (SELECT value FROM semel_meta WHERE name = 'schema_version')
                 WHERE name = 'compatible_with'";
    psql(&url, alone);
    let (said, why) = ends(&mut semel(["migrate", "--store", &url]), 1);
    assert_eq!(said, "");
    assert!(why.contains("run a newer version of Semel"), "{why}");
}

#[test]
fn a_sqlite_file_is_made_and_migrated_by_opening_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("semel.db");
    let store = format!("sqlite:{}", path.display());
    let (said, _) = ends(&mut semel(["migrate", "--store", &store]), 0);
    assert!(said.contains("was created") && path.is_file(), "{said}");
    let (said, _) = ends(&mut semel(["migrate", "--store", &store]), 0);
    assert!(said.contains("has the newest tables"), "{said}");
}

#[test]
fn what_cannot_be_migrated_is_told_in_one_line_without_the_password() {
    let directory = tempfile::tempdir().unwrap();
    for (store, words) in [
        ("mysql://root:s3cret@localhost/payments", "unknown kind of store"),
        ("payments", "a store URL begins with its kind"),
        ("sqlite:", "the file is missing"),
        ("sqlite:semel.db?mode=ro", "takes no options"),
        ("sqlite://semel.db", "two slashes"),
        ("memory:", "has no tables"),
        ("postgres://root:s3cret@localhost:no-port/payments", "not a PostgreSQL URL"),
        // Nobody listens there.
        ("postgres://root:s3cret@127.0.0.1:1/payments", "connection refused: 127.0.0.1:1 "),
        ("sqlite:/no/such/directory/semel.db", "does not exist"),
    ] {
        let (said, why) = ends(semel(["migrate", "--store", store]).current_dir(directory.path()), 1);
        assert_eq!(said, "", "{store}");
        assert!(why.starts_with("semel: ") && why.contains(words), "{store}: {why}");
        assert_eq!(why.lines().count(), 1, "{store}: {why}");
        assert!(!why.contains("s3cret"), "{store}: {why}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{store} makes no file");
    }
}

#[test]
fn an_unknown_role_is_named_once() {
    let server = Server::Postgres.url();
    let (_, place) = server.rsplit_once('@').unwrap();
    let store = format!("postgres://nobody_known:s3cret@{place}");
    let (_, why) = ends(&mut semel(["migrate", "--store", &store]), 1);
    assert_eq!(why, "semel: the server refuses the connection: role \"nobody_known\" does not exist\n");
    let (_, why) = ends(&mut semel(["gateway", "--upstream", "http://127.0.0.1:9", "--store", &store]), 1);
    assert_eq!(why.matches("nobody_known\" does not exist").count(), 1, "{why}");
}

#[test]
fn without_a_store_it_says_what_is_missing() {
    let (_, why) = ends(&mut semel(["migrate"]), 2);
    assert!(why.contains("--store <URL>"), "{why}");
}

#[test]
fn help_teaches() {
    let (help, _) = ends(semel(["migrate", "--help"]).env("SEMEL_STORE", "postgres://root:s3cret@db/x"), 0);
    for words in ["Examples:", "--print", "SEMEL_STORE", "psql", "sqlite:FILE", "changelog", "Exit status"] {
        assert!(help.contains(words), "{words} is missing in {help}");
    }
    assert!(!help.contains("s3cret"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 92), "{help}");
    let (help, _) = ends(&mut semel(["--help"]), 0);
    assert!(help.contains("migrate"), "{help}");
}
