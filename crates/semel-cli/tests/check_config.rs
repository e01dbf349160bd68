//! `semel check-config` as users run it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use std::process::{Command, Output};

/// Checks a file of this content, in a directory of its own.
fn check(toml: &str, environment: &[(&str, &str)]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("semel.toml"), toml).unwrap();
    semel(environment).current_dir(directory.path()).args(["check-config", "semel.toml"]).output().unwrap()
}

fn semel(environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command.env_clear().envs(environment.iter().copied());
    command
}

fn out(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn err(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const RIGHT: &str = r#"
upstream = "http://127.0.0.1:9000"
store = "postgres://app:word@db/payments"

[admin]
token = "env:SEMEL_ADMIN_TOKEN"

[scope]
tenant = ["header:x-account-id", "credential"]

[[route]]
operation = "create_payment"
match = "POST /payments"

[[route]]
operation = "refund"
match = "POST /payments/{id}/refunds"
key = "optional"
retention = "72h"
in_flight = "wait:5s"
[route.reconcile]
poll = "http://127.0.0.1:9000/operations/{operation_id}"

[[webhook]]
source = "provider"
secrets = ["env:SEMEL_WEBHOOK_SECRET"]

[outbox]
sink = "nats://semel:word@nats.internal:4222"
subject = "payments"

[telemetry]
otlp = "http://127.0.0.1:4318"
sampling = 0.25
metrics = true
[telemetry.headers]
authorization = "s3cr3t-of-the-collector"
"#;

#[test]
fn a_right_file_is_told_what_it_comes_to() {
    let secrets = [("SEMEL_ADMIN_TOKEN", "s3cr3t-token"), ("SEMEL_WEBHOOK_SECRET", WEBHOOK_SECRET)];
    let output = check(RIGHT, &secrets);
    assert_eq!(
        out(&output),
        "\
semel.toml: OK

  upstream  http://127.0.0.1:9000/
  listen    127.0.0.1:8080
  admin     127.0.0.1:8081 (with a token)
  store     postgres://app@db/payments
  profile   ietf (application/problem+json)
  tenant    header:x-account-id, credential
            A refreshed bearer token is another tenant: a retry with it executes again.
            A revoked credential still gets replays until the window is over.
  worker    in the gateway
  poll      refund: http://127.0.0.1:9000/operations/{operation_id} after 5s, 12 times at most
  webhook   /v1/webhooks/provider (1 secret)
  outbox    events go to nats://nats.internal:4222, under payments.KIND
  traces    25% of the requests to http://127.0.0.1:4318/, and metrics every 15s

  OPERATION       REQUEST                      KEY       WINDOW  TIMEOUT  IN FLIGHT
  create_payment  POST /payments               required  24h     25s      conflict
  refund          POST /payments/{id}/refunds  optional  3d      25s      wait:5s
"
    );
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
}

#[test]
fn without_secrets_a_file_is_checked_where_they_are_not_at_hand() {
    const ELSEWHERE: &str = r#"
[encryption]
keys = [{ id = "2026-11", key = "file:/run/secrets/no-such-key" }, { id = "2026-05", key = "env:NO_SUCH_KEY" }]
[tls]
certificate = "/no/such/tls.crt"
key = "/no/such/tls.key"
[scope.jwt]
jwks = "/no/such/jwks.json"
audience = ["https://api.example.com"]
[[admin.user]]
name = "oncall"
token = "env:NO_SUCH_TOKEN"
role = "operator"
"#;
    let file = RIGHT.replace("\"credential\"]", "\"jwt:sub\"]") + ELSEWHERE;
    let file = file.replace("\"s3cr3t-of-the-collector\"", "\"env:NO_SUCH_HEADER\"");
    let output = check(&file, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", out(&output));
    for missing in
        ["SEMEL_ADMIN_TOKEN", "SEMEL_WEBHOOK_SECRET", "NO_SUCH_KEY", "/no/such/tls.crt", "NO_SUCH_HEADER"]
    {
        assert!(err(&output).contains(missing), "{missing}: {}", err(&output));
    }
    let without = |file: &str| {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("semel.toml"), file).unwrap();
        let arguments = ["check-config", "semel.toml", "--without-secrets"];
        semel(&[]).current_dir(directory.path()).args(arguments).output().unwrap()
    };
    let output = without(&file);
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
    assert!(out(&output).starts_with("semel.toml: OK, secrets not checked\n"), "{}", out(&output));
    // What stands in the file itself is checked all the same.
    let output = without(&file.replace("env:SEMEL_WEBHOOK_SECRET", "whsec_short"));
    assert!(err(&output).contains("a webhook secret is whsec_ and 24 to 64 bytes"), "{}", err(&output));
}

#[test]
fn strictly_checked_tenants_must_not_come_from_bearer_credentials() {
    let strictly = |scope: &str| {
        let directory = tempfile::tempdir().unwrap();
        let file = format!("upstream = \"http://127.0.0.1:9000\"\n{scope}");
        std::fs::write(directory.path().join("semel.toml"), file).unwrap();
        let arguments = ["check-config", "semel.toml", "--strict"];
        semel(&[]).current_dir(directory.path()).args(arguments).output().unwrap()
    };
    for scope in ["", "[scope]\ntenant = [\"header:x-account-id\", \"credential\"]\n"] {
        let output = strictly(scope);
        assert_eq!(output.status.code(), Some(1), "{}", out(&output));
        assert_eq!(
            err(&output),
            "error: tenants come from bearer credentials. A refreshed bearer token is another tenant: a retry with it executes again.\n \
             = help: name a source that stays: [scope] tenant = [\"header:x-account-id\"], [\"jwt:sub\"] or [\"forward-auth\"]\n"
        );
    }
    let output = strictly("[scope]\ntenant = [\"header:x-account-id\"]\n");
    assert_eq!((output.status.code(), err(&output)), (Some(0), ""));
}

#[test]
fn the_readme_says_what_a_credential_as_the_tenant_means() {
    use semel_gateway::tenant::{REFRESHED, REVOKED};
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [REFRESHED, REVOKED] {
        assert!(readme.contains(sentence), "{sentence}");
    }
}

#[test]
fn the_profile_in_force_is_shown() {
    let shown = |settings: &str| {
        let output =
            check(&format!("upstream = \"http://127.0.0.1:9000\"\nstore = \"memory:\"\n{settings}"), &[]);
        assert!(output.status.success(), "{}", err(&output));
        let line = out(&output).lines().find_map(|line| line.trim().strip_prefix("profile").map(str::trim));
        line.unwrap().to_owned()
    };
    assert_eq!(shown("profile = \"stripe\""), "stripe (application/json)");
    let own = "profile = \"mybank\"\n[profiles.mybank]\nextends = \"ucp\"\ncontent_type = \"application/vnd.bank+json\"";
    assert_eq!(shown(own), "mybank (application/vnd.bank+json, extends ucp)");
}

#[test]
fn a_scope_of_keys_that_is_not_the_operation_is_shown() {
    let file = "upstream = \"http://127.0.0.1:9000\"\nstore = \"memory:\"\nprofile = \"stripe\"\n\
                [[route]]\noperation = \"pay\"\nmatch = \"POST /payments\"\n\
                [[route]]\noperation = \"refund\"\nmatch = \"POST /refunds\"\nkey.scope = \"operation\"\n";
    let output = check(file, &[]);
    let told = out(&output);
    assert!(output.status.success(), "{}", err(&output));
    let line = |operation: &str| told.lines().find(|line| line.trim().starts_with(operation)).unwrap();
    assert!(line("pay").contains("required, scope tenant"), "{told}");
    assert!(line("refund").contains("required") && !line("refund").contains("scope"), "{told}");
}

#[test]
fn a_file_without_routes_is_told_what_is_protected() {
    let output = check("upstream = \"http://127.0.0.1:9000\"\nstore = \"memory:\"\n", &[]);
    let told = out(&output);
    assert!(output.status.success(), "{}", err(&output));
    for line in [
        "  store     memory: (not durable: a restart forgets every key)",
        "  admin     127.0.0.1:8081 (without a token: read only)",
        "  tenant    credential; callers without one share a tenant",
        "  (each path)  POST, PATCH (no route is declared)  optional  24h     25s      conflict",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
}

#[test]
fn a_wrong_file_is_shown_like_by_a_compiler() {
    let output = check("upstrem = \"http://127.0.0.1:9000\"\n", &[]);
    assert_eq!(
        err(&output),
        "\
error: `upstream` is missing
 --> semel.toml
  = help: add upstream = \"http://127.0.0.1:9000\"

error: `upstrem` is not a setting
 --> semel.toml:1:1
  |
1 | upstrem = ***********************
  | ^^^^^^^
  = help: did you mean `upstream`?

semel.toml: 2 errors
"
    );
    assert_eq!((output.status.code(), out(&output)), (Some(1), ""));
}

#[test]
fn colours_are_for_terminals_and_who_insists() {
    let coloured = check("", &[("CLICOLOR_FORCE", "1")]);
    assert!(err(&coloured).contains("\u{1b}["), "{}", err(&coloured));
    assert!(!err(&check("", &[])).contains('\u{1b}'));
    assert!(!err(&check("", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")])).contains('\u{1b}'));
}

#[test]
fn a_file_that_is_not_there_and_arguments_that_are_wrong_have_their_statuses() {
    let missing = semel(&[]).args(["check-config", "/no/such/semel.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(1));
    let told = err(&missing);
    assert!(told.starts_with("semel: /no/such/semel.toml cannot be read: No such file"), "{told}");
    assert_eq!(semel(&[]).arg("check-config").output().unwrap().status.code(), Some(2));
}

#[test]
fn keys_are_told_by_their_names_alone() {
    let (new, old) = ("11".repeat(32), "05".repeat(32));
    let secrets = [("NEW", new.as_str()), ("OLD", old.as_str())];
    let file = |more: &str| {
        format!(
            "upstream = \"http://127.0.0.1:9000\"\n[encryption]\n\
             keys = [{{ id = \"2026-11\", key = \"env:NEW\" }}, {{ id = \"2026-05\", key = \"env:OLD\" }}]\n{more}"
        )
    };
    for (more, told) in [
        ("", "  sealing   with the key 2026-11; opens 2026-05; plain records are accepted\n"),
        (
            "plain = \"refused\"",
            "  sealing   with the key 2026-11; opens 2026-05; plain records are refused\n",
        ),
        (
            "seal_with = \"none\"",
            "  sealing   nothing yet; opens 2026-11, 2026-05; plain records are accepted\n",
        ),
    ] {
        let output = check(&file(more), &secrets);
        assert!(out(&output).contains(told), "{}", out(&output));
        assert!(!out(&output).contains("1111"));
    }
}

#[test]
fn rekeying_needs_a_key_to_seal_with() {
    let directory = tempfile::tempdir().unwrap();
    let key = "11".repeat(32);
    let run = |sections: &str, more: &[&str]| {
        let text = format!("upstream = \"http://127.0.0.1:9000\"\nstore = \"sqlite:semel.db\"\n{sections}");
        std::fs::write(directory.path().join("semel.toml"), text).unwrap();
        let mut command = semel(&[("KEY", &key)]);
        command
            .current_dir(directory.path())
            .args(["rekey", "--config", "semel.toml"])
            .args(more)
            .output()
            .unwrap()
    };
    let keys = "[encryption]\nkeys = [{ id = \"2026-11\", key = \"env:KEY\" }]\n";
    let none = format!("{keys}seal_with = \"none\"\n");
    for (sections, more, told) in [
        ("", &[][..], "semel.toml has no [encryption]"),
        (none.as_str(), &[], "semel.toml says seal_with = \"none\""),
        (keys, &["--decrypt"], "semel.toml still seals with the key 2026-11"),
    ] {
        let output = run(sections, more);
        assert_eq!(output.status.code(), Some(1));
        assert!(err(&output).contains(told), "{}", err(&output));
    }
    assert!(!directory.path().join("semel.db").exists(), "nothing is opened before that is clear");
    let done = run(keys, &[]);
    assert_eq!(
        (done.status.code(), out(&done)),
        (Some(0), "Records read: 0, rewritten: 0. All are sealed with the key 2026-11.\n")
    );
}
