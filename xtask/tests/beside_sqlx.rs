//! `semel-tower` resolves and builds beside an application's own `sqlx`, whichever databases that has.
//!
//! One program can link one SQLite. `semel-sqlite` brings rusqlite's and sqlx brings its own, so that these two exclude each other, and
//! the layer must not bring `semel-sqlite` unless it is asked to.
#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace")
}

/// Below cargo's target directory, so that a second run has little to do.
fn target() -> PathBuf {
    let own = std::env::current_exe().expect("the test's own path");
    let target = own.ancestors().find(|place| place.ends_with("debug")).and_then(Path::parent);
    target.expect("cargo built this test").join("beside-sqlx")
}

/// A copy of the crate, outside the workspace, with the versions of the workspace's lock file where it has them.
fn copied(name: &str) -> PathBuf {
    let from = root().join("xtask/tests/beside_sqlx").join(name);
    let to = target().join(name);
    fs::create_dir_all(to.join("src")).expect("a directory");
    let manifest = fs::read_to_string(from.join("Cargo.toml")).expect("the manifest");
    let crates = root().join("crates");
    let manifest = manifest.replace("../../../../crates", crates.to_str().expect("a path as text"));
    fs::write(to.join("Cargo.toml"), manifest).expect("the copy");
    fs::copy(from.join("src/main.rs"), to.join("src/main.rs")).expect("the copy");
    fs::copy(root().join("Cargo.lock"), to.join("Cargo.lock")).expect("the copy");
    to
}

fn cargo(directory: &Path, arguments: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(directory).env("CARGO_TARGET_DIR", target());
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("RUSTFLAGS");
    cargo.output().expect("cargo runs")
}

#[test]
fn a_service_with_sqlx_and_the_layer_builds() {
    for name in ["postgres", "sqlite"] {
        let done = cargo(&copied(name), &["build", "--quiet"]);
        assert!(done.status.success(), "{name}:\n{}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The guide says so. If it is not so any more, the guide can say less.
#[test]
fn sqlx_with_sqlite_and_semel_sqlite_exclude_each_other() {
    let directory = copied("sqlite");
    let excluded = target().join("excluded");
    fs::create_dir_all(excluded.join("src")).expect("a directory");
    fs::copy(directory.join("src/main.rs"), excluded.join("src/main.rs")).expect("the copy");
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("the manifest");
    let crates = root().join("crates");
    let both = format!("[dependencies]\nsemel-sqlite = {{ path = \"{}/semel-sqlite\" }}", crates.display());
    fs::write(excluded.join("Cargo.toml"), manifest.replace("[dependencies]", &both)).expect("the manifest");
    let done = cargo(&excluded, &["generate-lockfile"]);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("links to the native library `sqlite3`"), "{said}");
}
