//! The smaller tiers of `cargo xtask test`: one crate with what it needs, and the crates whose tests need no server.

use crate::step::{self, Outcome, cargo};
use crate::{dynoxide, python, sdks, tools};
use semel_testing::servers::{HOST, Host, Server};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Crates of which all tests, or all but some programs, need no server. The others (semel-postgres, semel-cli, the campaign, payments,
/// guides, benches) are left to the whole run.
const WITHOUT_SERVERS: [&str; 19] = [
    "minimal-axum",
    "outside-effect",
    "same-transaction-sqlite",
    "semel",
    "semel-check",
    "semel-conformance",
    "semel-counts",
    "semel-demo",
    "semel-demo-provider",
    "semel-events",
    "semel-fuzz",
    "semel-gateway",
    "semel-http",
    "semel-model",
    "semel-simulator",
    "semel-sqlite",
    "semel-tower",
    "semel-worker",
    "xtask",
];

/// Test programs of these crates that do need a server.
const WITH_SERVERS: [&str; 5] = ["campaign", "inbox", "outbox", "postgres", "worker"];

/// Runs the tests that need no server.
pub(crate) fn quick() -> Outcome {
    let start = Instant::now();
    step::timed("tools", "what the tests need besides cargo", tools::quick)?;
    let mut tests = cargo(["test", "--lib", "--bins"]);
    tests.args(WITHOUT_SERVERS.iter().flat_map(|package| ["-p", package]));
    for program in programs()? {
        tests.args(["--test", &program]);
    }
    // A test that asks for a server does not belong here, and fails whatever the machine has.
    for server in Server::ALL {
        tests.env_remove(server.variable());
    }
    step::run("tests without servers", tests.env(HOST, "nobody: `cargo xtask test --quick` has no servers"))?;
    println!("\n{}", step::in_bold(&format!("test: passed in {}", step::seconds(start.elapsed()))));
    Ok(())
}

/// The test programs that need no server, by name.
fn programs() -> Result<Vec<String>, String> {
    let output = cargo(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cargo could not be started: {error}"))?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let list = |value: &Value, of: &str| value[of].as_array().cloned().unwrap_or_default();
    let is = |value: &Value, names: &[&str]| value["name"].as_str().is_some_and(|name| names.contains(&name));
    let packages = list(&metadata, "packages").into_iter().filter(|package| is(package, &WITHOUT_SERVERS));
    let targets = packages.flat_map(|package| list(&package, "targets"));
    let tests = targets.filter(|target| target["kind"][0] == "test" && !is(target, &WITH_SERVERS));
    let names: BTreeSet<String> = tests.filter_map(|test| Some(test["name"].as_str()?.to_owned())).collect();
    Ok(names.into_iter().collect())
}

/// Runs the tests of one crate, or those with `name` in their name. Servers start when a test asks for them.
pub(crate) fn of_crate(package: &str, name: Option<&str>) -> Outcome {
    step::timed("tools", "what the tests need besides cargo", || {
        tools::ensure()?;
        if package == "semel-dynamodb" {
            dynoxide::provide()?;
        }
        // The only crate whose tests use the Python packages and the SDKs.
        if package == "semel-cli" { python::provide().and_then(|()| sdks::provide()) } else { Ok(()) }
    })?;
    let host = Host::start()?;
    let tests = |program: &[&str]| {
        let mut tests = cargo([]);
        tests.args(program).args(["-p", package, "--all-features", "--tests"]).args(name);
        tests.envs(host.settings());
        tests
    };
    // A name that no test has is a mistake, which nextest refuses and cargo's own runner calls a success.
    if step::succeeds(&mut cargo(["nextest", "--version"])) {
        return step::run("tests", &mut tests(&["nextest", "run"]));
    }
    if let Some(name) = name {
        exists(&mut tests(&["test", "--quiet"]), package, name)?;
    }
    step::run("tests", &mut tests(&["test"]))
}

fn exists(tests: &mut Command, package: &str, name: &str) -> Outcome {
    let listed = tests.args(["--", "--list"]).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let listed = listed.map_err(|error| format!("cargo could not be started: {error}"))?;
    let any = String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.ends_with(": test"));
    // What does not compile is told by the run itself.
    if any || !listed.status.success() {
        Ok(())
    } else {
        Err(format!("no test of {package} has `{name}` in its name"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_need_a_server_are_left_out_and_all_others_are_found() {
        let programs = programs().unwrap();
        for name in ["conformance", "engine", "http", "proxy", "seeds"] {
            assert!(programs.iter().any(|program| program == name), "{name}: {programs:?}");
        }
        assert!(!programs.iter().any(|program| WITH_SERVERS.contains(&&**program)), "{programs:?}");
    }
}
