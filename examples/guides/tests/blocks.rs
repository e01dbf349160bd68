//! Every Rust block of a page is in a program that compiles.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the blocks of each page come from. The README files of published crates are compiled as documentation tests.
const PAGES: &[(&str, &[&str])] = &[
    (
        "README.md",
        &[
            "examples/minimal-axum/src/main.rs",
            "examples/same-transaction-sqlite/src/main.rs",
            "examples/outside-effect/src/main.rs",
        ],
    ),
    ("docs/start/rust.md", &["examples/minimal-axum/src/main.rs"]),
    ("docs/guides/grpc.md", &["examples/grpc/src/main.rs"]),
    (
        "docs/guides/operations-with-outside-effects.md",
        &["examples/guides/src/operations_with_outside_effects.rs"],
    ),
    (
        "docs/guides/protecting-an-axum-service.md",
        &[
            "examples/guides/src/protecting_an_axum_service.rs",
            "examples/same-transaction-sqlite/src/main.rs",
        ],
    ),
    ("docs/guides/settling-doubt.md", &["examples/guides/src/settling_doubt.rs"]),
    ("docs/guides/telling-others-once.md", &["examples/guides/src/telling_others_once.rs"]),
    ("docs/guides/writing-a-store.md", &["examples/guides/src/writing_a_store.rs"]),
    ("docs/operating/encryption.md", &["examples/guides/src/encryption.rs"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next())
}

/// Lines without their indentation, and without empty ones: a block may be shown further to the left than it stands in its program.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// What a line imports: `use axum::{Json, http::StatusCode};` both `axum::Json` and `axum::http::StatusCode`.
fn imports(line: &str) -> Vec<String> {
    let Some(path) = line.strip_prefix("use ").and_then(|line| line.strip_suffix(';')) else {
        return Vec::new();
    };
    match path.split_once('{') {
        Some((path, items)) => {
            items.trim_end_matches('}').split(',').map(|item| format!("{path}{}", item.trim())).collect()
        }
        None => vec![path.to_owned()],
    }
}

/// Whether a program has the block: what it imports somewhere, all other lines in one piece.
fn has(program: &str, block: &str) -> bool {
    let program = lines(program);
    let imported: Vec<String> = program.iter().flat_map(|line| imports(line)).collect();
    let (uses, rest): (Vec<_>, Vec<_>) =
        lines(block).into_iter().partition(|line| line.starts_with("use ") && line.ends_with(';'));
    uses.iter().flat_map(|line| imports(line)).all(|import| imported.contains(&import))
        && (rest.is_empty() || program.windows(rest.len()).any(|window| window == rest))
}

#[test]
fn every_rust_block_is_in_a_program_that_compiles() {
    for (page, programs) in PAGES {
        let text = fs::read_to_string(root().join(page)).expect(page);
        let programs: Vec<_> =
            programs.iter().map(|program| fs::read_to_string(root().join(program)).expect(program)).collect();
        let mut count = 0;
        for block in blocks(&text) {
            assert!(block.starts_with("use "), "{page}: this block does not say what it imports:\n{block}");
            let found = programs.iter().any(|program| has(program, block));
            assert!(found, "{page}: this block is in none of its programs:\n{block}");
            count += 1;
        }
        assert!(count > 0, "{page} has no Rust block any more: remove it from the list");
    }
}

/// The dependencies that guides tell an application to write into its `Cargo.toml`.
#[test]
fn every_dependency_shown_is_one_of_the_workspace_in_its_version_with_its_features() {
    let read = |path: PathBuf| -> toml::Table {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.parse().expect("a manifest")
    };
    let workspace = read(root().join("Cargo.toml"));
    let known = &workspace["workspace"]["dependencies"];
    let version = |value: &toml::Value| {
        value.as_str().or_else(|| value.get("version")?.as_str()).expect("a version").to_owned()
    };
    let mut count = 0;
    for (page, _) in PAGES {
        let text = fs::read_to_string(root().join(page)).expect(page);
        for block in text.split("```toml\n").skip(1).filter(|rest| rest.starts_with("[dependencies]")) {
            let shown: toml::Table = block.split("```").next().unwrap_or_default().parse().expect(page);
            for (name, shown) in shown["dependencies"].as_table().expect("dependencies") {
                let here =
                    known.get(name).unwrap_or_else(|| panic!("{page}: nothing here depends on {name}"));
                assert!(version(here).starts_with(&version(shown)), "{page}: {name} has another version");
                let features = shown.get("features").and_then(toml::Value::as_array);
                if name.starts_with("semel") {
                    let manifest = read(root().join("crates").join(name).join("Cargo.toml"));
                    for feature in features.into_iter().flatten().filter_map(toml::Value::as_str) {
                        assert!(
                            manifest["features"].get(feature).is_some(),
                            "{page}: {name} has no {feature}"
                        );
                    }
                }
                count += 1;
            }
        }
    }
    assert!(count > 5, "the blocks were not found");
}

#[test]
fn no_page_shows_rust_that_nothing_compiles() {
    let mut pages = vec![root().join("README.md")];
    collect(&root().join("docs"), &mut pages);
    assert!(pages.len() > 50, "the pages were not found");
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        let listed = PAGES.iter().any(|(listed, _)| page.ends_with(listed));
        assert!(listed || blocks(&text).next().is_none(), "{}: add it to the list", page.display());
    }
}

fn collect(directory: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the documentation") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}
