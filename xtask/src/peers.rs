//! `cargo xtask bench peers`: the peers, each from its public registry at a stated version, into directories below cargo's target
//! directory.
//!
//! A peer that cannot be had is no failure: the benchmark is told why, and the rest goes on.

use crate::step::{self, Outcome};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const RESTATE: &str = "@restatedev/restate-server@1.7.12";
const IDEMPOTENT_PROXY: &str = "idempotent-proxy-server@1.2.2";
/// DBOS and Powertools (which wants boto3 even where DynamoDB is not used), and what they are served by.
const PYTHON: [&str; 7] = [
    "dbos==3.3.0",
    "aws-lambda-powertools==3.37.0",
    "boto3==1.44.0",
    "redis==8.1.0",
    "uvicorn==0.54.0",
    "uvloop==0.23.0",
    "httptools==0.9.0",
];

/// What says which packages are in a directory.
const DONE: &str = "semel-packages";

/// Installs all of them, and builds the services in Rust. What the benchmark is to be told: where each is, or why it is not there.
pub(crate) fn provide_all() -> Result<Vec<String>, String> {
    tools::peers()?;
    let place = place().ok_or("this program does not know where it is")?;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (name, option, provided) in [
        ("Redis", None, tools::redis().map(|()| PathBuf::new())),
        ("Restate", Some("--restate"), restate(&place)),
        ("Restate's handler", Some("--restate-handler"), restate_handler()),
        ("idempotent-proxy", Some("--idempotent-proxy"), idempotent_proxy(&place)),
        ("DBOS and Powertools", Some("--python"), python(&place)),
    ] {
        match (option, provided) {
            (Some(option), Ok(path)) => found.extend([option.to_owned(), path.display().to_string()]),
            (None, Ok(_)) => {}
            (_, Err(why)) => missing.extend(["--missing".to_owned(), format!("{name}: {why}")]),
        }
    }
    let services = ["build", "--release", "-p", "semel-benches", "--bin", "layered", "--bin", "textbook"];
    step::run("the services in Rust", &mut step::cargo(services))?;
    found.append(&mut missing);
    Ok(found)
}

/// The server, a program that npm brings.
fn restate(place: &Path) -> Result<PathBuf, String> {
    tools::npm()?;
    let place = place.join("restate");
    provide(&place, RESTATE, || {
        fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix"])
            .arg(&place)
            .arg(RESTATE);
        step::run("Restate", &mut npm)
    })?;
    let packages = place.join("node_modules/@restatedev");
    let platforms = fs::read_dir(&packages).into_iter().flatten().flatten();
    let mut programs = platforms.map(|platform| platform.path().join("bin/restate-server"));
    programs
        .find(|program| program.is_file())
        .ok_or_else(|| format!("{RESTATE} has no program for this machine"))
}

/// A crate of its own, so that nobody else builds what it needs. It lands beside what else cargo builds.
fn restate_handler() -> Result<PathBuf, String> {
    let mut build = step::cargo([
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        "benches/peers/restate/Cargo.toml",
    ]);
    let target = target().ok_or("this program does not know where it is")?;
    step::run("Restate's handler", build.arg("--target-dir").arg(&target))?;
    Ok(target.join("release/restate-handler"))
}

fn idempotent_proxy(place: &Path) -> Result<PathBuf, String> {
    let place = place.join("idempotent-proxy");
    provide(&place, IDEMPOTENT_PROXY, || {
        let mut install = step::cargo(["install", "--locked", IDEMPOTENT_PROXY, "--root"]);
        step::run("idempotent-proxy", install.arg(&place).env_remove("CARGO_TARGET_DIR"))
    })?;
    Ok(place.join("bin/idempotent-proxy-server"))
}

fn python(place: &Path) -> Result<PathBuf, String> {
    tools::venv()?;
    let place = place.join("python");
    provide(&place, &PYTHON.join(" "), || {
        let venv = ["-m", "venv", "--clear"];
        step::run("a Python for peers", Command::new("python3").args(venv).arg(&place))?;
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYTHON);
        step::run("DBOS and Powertools", &mut pip)
    })?;
    Ok(place)
}

/// Installs into a directory, unless it holds just that already.
fn provide(place: &Path, wanted: &str, install: impl FnOnce() -> Outcome) -> Outcome {
    let done = place.join(DONE);
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    install()?;
    fs::write(&done, wanted).map_err(|error| format!("{}: {error}", done.display()))
}

/// This program is `TARGET/debug/xtask`.
fn target() -> Option<PathBuf> {
    Some(env::current_exe().ok()?.parent()?.parent()?.to_owned())
}

fn place() -> Option<PathBuf> {
    Some(target()?.join("tools").join("peers"))
}
