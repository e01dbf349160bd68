//! The smaller tiers of `cargo xtask test`: one crate with what it needs, and everything that needs no server.

use crate::step::{self, Outcome, cargo};
use crate::{python, tools};
use semel_testing::servers::{HOST, Host, Server};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Crates whose tests need no server: all that decides, the embedded store, the layer and the gateway.
const WITHOUT_SERVERS: [&str; 8] = [
    "semel",
    "semel-conformance",
    "semel-gateway",
    "semel-http",
    "semel-model",
    "semel-sqlite",
    "semel-tower",
    "xtask",
];

/// Runs the tests that need no server.
pub(crate) fn quick() -> Outcome {
    let start = Instant::now();
    step::timed("tools", "what the tests need besides cargo", tools::quick)?;
    let mut tests = cargo(["test", "--tests"]);
    tests.args(WITHOUT_SERVERS.iter().flat_map(|package| ["-p", package]));
    // A test that asks for a server does not belong here, and fails whatever the machine has.
    for server in Server::ALL {
        tests.env_remove(server.variable());
    }
    step::run("tests without servers", tests.env(HOST, "nobody: `cargo xtask test --quick` has no servers"))?;
    println!("\n{}", step::in_bold(&format!("test: passed in {}", step::seconds(start.elapsed()))));
    Ok(())
}

/// Runs the tests of one crate, or those with `name` in their name. Servers start when a test asks for them.
pub(crate) fn of_crate(package: &str, name: Option<&str>) -> Outcome {
    step::timed("tools", "what the tests need besides cargo", || {
        tools::ensure()?;
        // The only crate whose tests use the Python packages.
        if package == "semel-cli" { python::provide() } else { Ok(()) }
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
