//! The public API of every library is the one in its `api.txt`: what users see changes on purpose or not at all.
//!
//! The text is made from the sources, by what `pub mod` and `pub use` lead to. Items that macros make are not in it.
//! `cargo xtask api` updates the files.
#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

mod print;
mod sources;
mod surface;

use sources::Sources;
use std::fs;
use std::path::{Path, PathBuf};

/// Set by `cargo xtask api`: write what differs.
const WRITE: &str = "SEMEL_API_WRITE";

#[test]
fn the_public_api_of_every_library_is_the_one_that_is_written_down() {
    let write = std::env::var_os(WRITE).is_some();
    let mut differing = Vec::new();
    for library in libraries() {
        let name = library.file_name().and_then(|name| name.to_str()).expect("a name");
        let sources = Sources::read(&library.join("src/lib.rs"));
        let text = surface::of(&name.replace('-', "_"), &sources);
        assert!(text.lines().count() > 10, "{name}: nothing public was found");
        let file = library.join("api.txt");
        let known = fs::read_to_string(&file).unwrap_or_default();
        if write {
            fs::write(&file, text).expect("the file can be written");
        } else if known != text {
            differing.push(format!("{name}:\n{}", difference(&known, &text)));
        }
    }
    assert!(
        differing.is_empty(),
        "the public API has changed. If that is meant, `cargo xtask api` writes it down.\n\n{}",
        differing.join("\n")
    );
}

/// The crates that are published as libraries: those whose documentation is published too.
fn libraries() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut libraries: Vec<_> = fs::read_dir(crates)
        .expect("the crates")
        .map(|entry| entry.expect("a crate").path())
        .filter(|path| is_documented(path))
        .collect();
    libraries.sort();
    assert!(libraries.len() > 5, "the crates were not found: {libraries:?}");
    libraries
}

fn is_documented(path: &Path) -> bool {
    let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
    manifest.lines().any(|line| line == "[package.metadata.docs.rs]")
}

/// Lines that only one of the texts has: enough to see what has changed.
fn difference(known: &str, now: &str) -> String {
    let only = |sign: char, one: &str, other: &str| {
        let other: Vec<_> = other.lines().collect();
        let lines = one.lines().filter(|line| !other.contains(line));
        lines.map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    only('-', known, now) + &only('+', now, known)
}

#[test]
fn what_is_reachable_is_shown_and_nothing_else() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/sample");
    let text = surface::of("sample", &Sources::read(&sample.join("root.rs")));
    let expected = fs::read_to_string(sample.join("expected.txt")).expect("what is expected");
    assert_eq!(text, expected);
}
