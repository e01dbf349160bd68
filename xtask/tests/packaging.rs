//! Every crate that is published can be packaged: its metadata is complete, and all its dependencies have versions.
#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

use std::path::Path;
use std::process::Command;

/// The crates that are published. A crate that is missing here must say `publish = false`.
const PUBLISHED: [&str; 9] = [
    "semel",
    "semel-conformance",
    "semel-events",
    "semel-gateway",
    "semel-http",
    "semel-postgres",
    "semel-sqlite",
    "semel-tower",
    "semel-worker",
];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace")
}

/// Nothing is compiled, and no registry is asked: within one call, cargo takes the crates of the workspace for published.
#[test]
fn every_published_crate_can_be_packaged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut package = Command::new(env!("CARGO"));
    package.current_dir(workspace()).args([
        "package",
        "--no-verify",
        "--offline",
        "--allow-dirty",
        "--target-dir",
    ]);
    package.arg(directory.path()).args(PUBLISHED.iter().flat_map(|name| ["-p", name]));
    let done = package.output().expect("cargo runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let packages = std::fs::read_dir(directory.path().join("package")).expect("packages");
    let packages = packages.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let mut packages: Vec<_> = packages.filter(|name| name.ends_with(".crate")).collect();
    packages.sort();
    let mut expected = PUBLISHED.map(|name| format!("{name}-{}.crate", env!("CARGO_PKG_VERSION")));
    expected.sort();
    assert_eq!(packages, expected);
}

#[test]
fn what_is_not_published_says_so() {
    for entry in std::fs::read_dir(workspace().join("crates")).expect("the crates") {
        let path = entry.expect("the crates").path();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let kept = manifest.lines().any(|line| line == "publish = false");
        assert_eq!(PUBLISHED.contains(&name), !kept, "{name}");
    }
}
