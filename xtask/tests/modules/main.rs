//! No module cycles: for every folder of modules, who uses whom among its members has no way back.
//!
//! The graph is computed from the sources, so that it holds for code behind any feature. Test modules are left out: they may look at
//! everything.
#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

mod cycle;
mod source;
mod tree;

use std::path::{Path, PathBuf};

#[test]
fn no_modules_of_a_crate_form_a_cycle() {
    let mut found = Vec::new();
    for root in roots() {
        let name = name_of(&root);
        for cycle in cycle::all(&tree::Tree::read(&root)) {
            found.push(format!("{name}: {}\n{}", cycle.members.join(", "), cycle.because.join("\n")));
        }
    }
    assert!(found.is_empty(), "these modules use each other in a circle:\n\n{}", found.join("\n\n"));
}

/// The root files of all crates of the workspace, binaries included.
fn roots() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace");
    let mut roots = Vec::new();
    collect(workspace, &mut roots);
    roots.sort();
    assert!(
        roots.iter().any(|root| root.ends_with("src/bin/layer/main.rs")),
        "the binaries were not found: {roots:?}"
    );
    assert!(roots.len() > 10, "the crates were not found: {roots:?}");
    roots
}

fn collect(folder: &Path, roots: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the workspace is readable") {
        let path = entry.expect("the workspace is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !path.is_dir() || name == "target" || name == "node_modules" || name.starts_with('.') {
            continue;
        }
        if name == "src" {
            roots.extend(
                ["lib.rs", "main.rs"].map(|file| path.join(file)).into_iter().filter(|file| file.exists()),
            );
            // Further binaries are crates of their own.
            if path.join("bin").is_dir() {
                collect_binaries(&path.join("bin"), roots);
            }
        } else {
            collect(&path, roots);
        }
    }
}

/// `src/bin/NAME.rs` and `src/bin/NAME/main.rs`.
fn collect_binaries(folder: &Path, roots: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the workspace is readable") {
        let path = entry.expect("the workspace is readable").path();
        if path.is_dir() {
            roots.extend(Some(path.join("main.rs")).filter(|file| file.exists()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            roots.push(path);
        }
    }
}

/// `semel-gateway`, `semel-fuzz (main.rs)` for a binary beside a library, or `benches (layer)` for one of several binaries.
fn name_of(root: &Path) -> String {
    let source = root.parent().expect("a root file is in a folder");
    if let Some(bin) = root.ancestors().find(|folder| folder.ends_with("src/bin")) {
        let package = bin.ancestors().nth(2).and_then(Path::file_name).and_then(|name| name.to_str());
        let binary =
            root.strip_prefix(bin).ok().and_then(|path| path.iter().next()).and_then(|name| name.to_str());
        return format!("{} ({})", package.unwrap_or("?"), binary.unwrap_or("?").trim_end_matches(".rs"));
    }
    let name = source.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or("?");
    match root.ends_with("main.rs") && source.join("lib.rs").exists() {
        true => format!("{name} (main.rs)"),
        false => name.to_owned(),
    }
}

#[test]
fn a_cycle_is_found_and_its_way_is_shown() {
    let cycles = cycle::all(&tree::Tree::read(&folder("circle")));
    let [cycle] = &cycles[..] else { panic!("one cycle, not {}", cycles.len()) };
    assert_eq!(cycle.members, ["first", "second", "third"]);
    assert!(cycle.because.iter().any(|line| line.contains("first → second")), "{:?}", cycle.because);
}

#[test]
fn parents_children_tests_and_siblings_in_one_direction_are_no_cycle() {
    assert!(cycle::all(&tree::Tree::read(&folder("line"))).is_empty());
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/modules/samples").join(name).join("root.rs")
}
