//! What the binary says of itself: help, completions, manual pages, health.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use std::process::{Command, Output, Stdio};

fn semel(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "SEMEL_ADMIN", "SEMEL_ADMIN_TOKEN"] {
        command.env_remove(name);
    }
    command.args(arguments).output().unwrap()
}

fn out(arguments: &[&str]) -> String {
    let output = semel(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_teaches() {
    for (command, parts) in [
        (
            "reload",
            &[
                "no connection\nis closed",
                "`[admin] listen`",
                "`[telemetry]`",
                "`waiters_per_tenant`",
                "SIGHUP",
                "restart",
                "SEMEL_ADMIN_TOKEN",
                "Exit status",
            ][..],
        ),
        ("health", &["HEALTHCHECK", "--ready", "Exit status"]),
        ("completions", &["bash", "zsh", "fish"]),
        ("man", &["man -l -", "--into <DIRECTORY>", "Exit status"]),
    ] {
        let help = out(&[command, "--help"]);
        assert!(help.contains("Examples:"), "{help}");
        for part in parts {
            assert!(help.to_lowercase().contains(&part.to_lowercase()), "{part}: {help}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
    }
}

#[test]
fn nobody_complains_of_a_reader_that_has_had_enough() {
    for arguments in [&["completions", "bash"][..], &["man"], &["migrate", "--print"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
        let output = command.args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&["completions", shell]);
        for command in ["gateway", "reload", "check-config"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    let script = out(&["completions", "bash"]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel");
    std::fs::write(&file, script).unwrap();
    let taken = Command::new("bash").arg("-n").arg(&file).status().unwrap();
    assert!(taken.success(), "bash takes it");
    assert_eq!(semel(&["completions", "cobol"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page() {
    let page = out(&["man"]);
    assert!(page.contains(".TH semel 1") && page.contains("semel\\-reload(1)"), "{page}");
    assert!(!page.contains("demo-part") && !page.contains("demo\\-part"), "{page}");
    let page = out(&["man", "operations", "settle"]);
    assert!(page.contains(".TH semel-operations-settle 1") && page.contains("\\-\\-outcome"), "{page}");
    assert_eq!(out(&["man", "operations", "resolve"]), page, "an alias has the page of its command");
    assert_eq!(semel(&["man", "nothing"]).status.code(), Some(2));

    let directory = tempfile::tempdir().unwrap();
    // Not there yet.
    let pages = directory.path().join("share/man/man1");
    out(&["man", "--into", pages.to_str().unwrap()]);
    for name in ["semel.1", "semel-gateway.1", "semel-outbox-drop.1"] {
        let page = std::fs::read_to_string(pages.join(name)).unwrap();
        assert!(page.contains(".SH EXAMPLES\n.nf\n"), "{name}: {page}");
        let request = |line: &&str| line.starts_with('.') && !line[1..].starts_with(char::is_alphabetic);
        assert_eq!(page.lines().find(request), None, "what is text is no request to the formatter");
    }
}

#[test]
fn who_does_not_answer_is_not_healthy() {
    // A port that was free a moment ago: nobody listens there.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let output = semel(&["health", "--admin", &format!("http://{address}")]);
    assert_eq!(output.status.code(), Some(1), "as HEALTHCHECK wants it: {output:?}");
    assert_eq!(semel(&["health", "--admin", "nowhere"]).status.code(), Some(2));
}
