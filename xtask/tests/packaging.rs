//! Every crate that is published can be packaged: its metadata is complete, it has a README, and all its dependencies have versions.
#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that are published. A crate that is missing here must say `publish = false`.
const PUBLISHED: [&str; 15] = [
    "semel",
    "semel-check",
    "semel-cli",
    "semel-conformance",
    "semel-demo",
    "semel-demo-provider",
    "semel-dynamodb",
    "semel-events",
    "semel-gateway",
    "semel-http",
    "semel-postgres",
    "semel-redis",
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

/// The crates by their names, with their folders and manifests.
fn manifests() -> Vec<(String, PathBuf, toml::Table)> {
    let crates = workspace().join("crates");
    let mut folders: Vec<_> =
        std::fs::read_dir(&crates).expect("the crates").map(|entry| entry.expect("a crate").path()).collect();
    folders.push(crates.join("semel-demo/provider"));
    let read = |folder: PathBuf| {
        let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("a manifest");
        let name = manifest["package"]["name"].as_str().expect("a name").to_owned();
        (name, folder, manifest)
    };
    folders.into_iter().map(read).collect()
}

#[test]
fn what_is_not_published_says_so() {
    for (name, _, manifest) in manifests() {
        let kept = manifest["package"].get("publish").is_some_and(|publish| publish.as_bool() == Some(false));
        assert_eq!(PUBLISHED.contains(&name.as_str()), !kept, "{name}");
    }
}

#[test]
fn what_is_published_has_all_that_a_registry_shows() {
    for (name, folder, manifest) in manifests() {
        if !PUBLISHED.contains(&name.as_str()) {
            continue;
        }
        let package = &manifest["package"];
        let description = package["description"].as_str().expect("a description");
        assert!((20..200).contains(&description.len()), "{name}: {description}");
        let list = |field: &str| {
            let list = package.get(field).and_then(toml::Value::as_array);
            list.unwrap_or_else(|| panic!("{name} has no {field}")).len()
        };
        assert!((1..=5).contains(&list("keywords")) && (1..=5).contains(&list("categories")), "{name}");
        let readme = std::fs::read_to_string(folder.join("README.md"));
        assert!(readme.unwrap_or_else(|_| panic!("{name} has no README.md")).len() > 300, "{name}");
        // Nothing is made up: the address is set before the first release.
        assert!(package.get("repository").is_none(), "{name}");
        let is_library = folder.join("src/lib.rs").exists() && !name.starts_with("semel-demo");
        if is_library {
            let docs = package.get("metadata").and_then(|metadata| metadata.get("docs")?.get("rs"));
            assert!(docs.is_some(), "{name}: no metadata for its documentation");
            let root = std::fs::read_to_string(folder.join("src/lib.rs")).expect("the root");
            assert!(root.contains("../README.md"), "{name}: its README is not tested");
        }
    }
}
