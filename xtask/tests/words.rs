//! Phrases that readers stumbled over do not come back: docs/glossary.md has the words that we use.
#![allow(clippy::panic, clippy::expect_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

/// What is not to be read in sources and documentation, in lower case, and what to write.
const UNWANTED: [(&str, &str); 16] = [
    ("anew", "again, or the verb: reload, rebuild, rewrite, restart"),
    ("compulsory", "required"),
    ("is none", "what it is: `None` without …, not valid, missing"),
    ("are none", "what they are: empty, missing, without …"),
    ("nobody's", "who or what it belongs to"),
    ("as good as never", "rarely, and how rarely"),
    ("is away", "is down, is unavailable"),
    ("of its own accord", "by itself"),
    ("testify", "submit evidence"),
    ("testifies", "submits evidence"),
    ("testified", "submitted evidence"),
    ("testimony", "evidence"),
    ("whoever is asked", "who that is: the authority, the instance, the service"),
    ("no company", "what the group is too small for"),
    ("by tls", "over TLS"),
    ("in the words of", "in the format of, as … spells it"),
];

/// Files that have to name the phrases.
const EXEMPT: [&str; 2] = ["docs/glossary.md", "xtask/tests/words.rs"];

#[test]
fn no_source_and_no_page_uses_a_phrase_that_readers_stumbled_over() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace");
    let mut files = Vec::new();
    collect(workspace, &mut files);
    assert!(files.len() > 500, "the sources were not found: {}", files.len());
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(workspace).expect("a file of the workspace");
        if EXEMPT.iter().any(|exempt| name == Path::new(exempt)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for (number, line) in text.lines().enumerate() {
            for (phrase, instead) in unwanted(line) {
                found.push(format!("{}:{}: `{phrase}`: write {instead}", name.display(), number + 1));
            }
        }
    }
    assert!(found.is_empty(), "phrases that readers stumbled over:\n{}", found.join("\n"));
}

/// The unwanted phrases of a line, whole words only.
fn unwanted(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = line.to_lowercase().replace('’', "'");
    UNWANTED.into_iter().filter(move |(phrase, _)| {
        line.match_indices(phrase).any(|(start, _)| {
            let is_outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            is_outside(line[..start].chars().next_back())
                && is_outside(line[start + phrase.len()..].chars().next())
        })
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the workspace is readable") {
        let path = entry.expect("the workspace is readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && name != "node_modules" && !name.starts_with('.') {
                collect(&path, files);
            }
        } else if name == "justfile" || [".rs", ".md", ".toml"].iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
}

#[test]
fn phrases_are_found_as_whole_words_in_any_case() {
    let phrases = |line: &str| unwanted(line).map(|(phrase, _)| phrase).collect::<Vec<_>>();
    assert_eq!(phrases("Anew: the key is compulsory."), ["anew", "compulsory"]);
    assert_eq!(phrases("that is nobody’s"), ["nobody's"]);
    assert!(phrases("let is_none = value.is_none(); by tlsv1; renewed").is_empty());
}
