//! The book: `docs/` rendered by mdBook, then every link in the rendered pages followed.

use crate::links;
use crate::step::{self, Outcome, succeeds};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The version that the book was written for. Another 0.5 on the search path is used as it is.
const VERSION: &str = "0.5.4";

/// Checks the links between all pages, builds the book and checks that.
pub(crate) fn run() -> Outcome {
    step::timed("links", "every link from one page to another leads to a file or heading", || {
        links::check(&step::root())
    })?;
    let program = provide()?;
    let book = target()?.join("book");
    step::run("book", Command::new(program).arg("build").arg("-d").arg(&book).current_dir(step::root()))?;
    step::timed(
        "book links",
        "every link in the rendered book leads somewhere, and search knows every page",
        || check(&step::root().join("docs"), &book),
    )?;
    println!("    open {}", book.join("index.html").display());
    Ok(())
}

/// The mdBook to use. One that is missing is built into the target directory, and nothing else on the machine changes. A debug
/// build without watch mode and web server takes half a minute on two cores; an optimised one takes several.
fn provide() -> Result<PathBuf, String> {
    let version = Command::new("mdbook").arg("--version").output();
    if version.is_ok_and(|version| version.stdout.starts_with(b"mdbook v0.5.")) {
        return Ok(PathBuf::from("mdbook"));
    }
    let place = target()?.join("tools").join("mdbook");
    let program = place.join("bin").join(format!("mdbook{}", env::consts::EXE_SUFFIX));
    if !succeeds(Command::new(&program).arg("--version")) {
        let package = format!("mdbook@{VERSION}");
        let mut install = step::cargo(["install", "--locked", "--debug", "--no-default-features"]);
        install.args(["--features", "search", &package, "--root"]).arg(&place);
        install.env_remove("CARGO_TARGET_DIR").env("CARGO_PROFILE_DEV_DEBUG", "0");
        step::run("mdbook", &mut install)?;
    }
    Ok(program)
}

/// This program is `TARGET/debug/xtask`.
fn target() -> Result<PathBuf, String> {
    let target = env::current_exe().ok().and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    target.ok_or_else(|| "this program does not know where it is".to_owned())
}

/// Checks that every source page is in the book, that every decision has a date and a status, that every relative link in the book has a target, and that the search index
/// names every page.
fn check(sources: &Path, book: &Path) -> Outcome {
    let failed = |error: std::io::Error| format!("book: {error}");
    let mut wrong = Vec::new();
    let rendered = files(book, "html").map_err(failed)?;
    for page in files(sources, "md").map_err(failed)? {
        if page != Path::new("SUMMARY.md") && !rendered.contains(&page.with_extension("html")) {
            wrong.push(format!("  docs/{}: not in docs/SUMMARY.md", page.display()));
        }
    }
    for page in files(&sources.join("decisions"), "md").map_err(failed)? {
        let text = fs::read_to_string(sources.join("decisions").join(&page)).map_err(failed)?;
        if page != Path::new("README.md") && !has_date_and_status(&text) {
            wrong.push(format!(
                "  docs/decisions/{}: no `*Accepted, 2026-11-18.*` below its title",
                page.display()
            ));
        }
    }
    let mut pages = BTreeMap::new();
    // mdBook's own: a page for wrong addresses, a copy of the first chapter, a table of contents.
    let own = ["404.html", "index.html", "toc.html"].map(Path::new);
    for page in rendered.iter().filter(|page| !own.contains(&page.as_path())) {
        pages.insert(page.clone(), fs::read_to_string(book.join(page)).map_err(failed)?);
    }
    let ids: BTreeMap<_, BTreeSet<_>> =
        pages.iter().map(|(page, html)| (page.clone(), attributes(html, "id").collect())).collect();
    for (page, html) in &pages {
        let links = attributes(html, "href").chain(attributes(html, "src"));
        for link in links.filter(|link| !link.contains(':') && !link.starts_with("//")) {
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let target = resolve(page, file);
            let found = match ids.get(&target) {
                Some(ids) => part.is_empty() || ids.contains(part),
                None => book.join(&target).is_file(),
            };
            if !found {
                wrong.push(format!("  {}: {link}", page.display()));
            }
        }
    }
    let index = search_index(book).map_err(failed)?;
    for page in pages.keys().filter(|page| !index.contains(&format!("\"{}#", page.display()))) {
        wrong.push(format!("  {}: unknown to the search", page.display()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("book: this is wrong:\n{}", wrong.join("\n"))) }
}

/// Whether the line below a decision's title is its status with a date: `*Accepted, 2026-11-18.*`, `*Superseded, …*`.
fn has_date_and_status(page: &str) -> bool {
    let line = page.lines().nth(2).unwrap_or_default();
    let dated = ["*Accepted, ", "*Superseded, "].iter().find_map(|status| line.strip_prefix(status));
    let date = dated.and_then(|dated| dated.get(..10)).unwrap_or_default();
    date.len() == 10
        && date
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
}

/// The values of one attribute, wherever it is in the page.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {name}=\"");
    let starts: Vec<_> = html.match_indices(&opening).map(|(at, _)| at + opening.len()).collect();
    starts.into_iter().filter_map(move |at| html[at..].split_once('"').map(|(value, _)| value))
}

/// Where a link of a page leads, relative to the book's root.
fn resolve(page: &Path, file: &str) -> PathBuf {
    if file.is_empty() {
        return page.to_owned();
    }
    let mut target = page.parent().map(Path::to_owned).unwrap_or_default();
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => drop(target.pop()),
            Component::Normal(name) => target.push(name),
            _ => {}
        }
    }
    target
}

/// All files with this ending, relative to the folder.
fn files(folder: &Path, ending: &str) -> std::io::Result<BTreeSet<PathBuf>> {
    let (mut found, mut left) = (BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.extend(path.strip_prefix(folder).map(Path::to_owned));
            }
        }
    }
    Ok(found)
}

/// The text of the search index, whose file name holds a hash of it.
fn search_index(book: &Path) -> std::io::Result<String> {
    for entry in fs::read_dir(book)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("searchindex") {
            return fs::read_to_string(entry.path());
        }
    }
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = env::temp_dir().join(format!("semel-book-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn dead_links_pages_outside_of_the_book_and_undated_decisions_are_all_named() {
        let sources = folder(
            "docs",
            &[
                ("SUMMARY.md", ""),
                ("README.md", ""),
                ("a/page.md", ""),
                ("lost.md", ""),
                ("decisions/README.md", ""),
                ("decisions/dated.md", "# A\n\n*Accepted, 2026-11-18.*\n"),
                ("decisions/undated.md", "# A\n\nBecause.\n"),
            ],
        );
        let book = folder(
            "html",
            &[
                (
                    "README.html",
                    "<a href=\"a/page.html#there\"> <a href=\"a/page.html#gone\"> <img src=\"x.svg\">",
                ),
                (
                    "a/page.html",
                    "<h2 id=\"there\"><a href=\"../README.html\"> <a href=\"https://example.com\">",
                ),
                ("decisions/README.html", ""),
                ("decisions/dated.html", ""),
                ("decisions/undated.html", ""),
                (
                    "searchindex-1.js",
                    "[\"README.html#a\", \"decisions/README.html#a\", \"decisions/dated.html#a\", \"decisions/undated.html#a\"]",
                ),
            ],
        );
        let failure = check(&sources, &book).unwrap_err();
        fs::remove_dir_all(sources).unwrap();
        fs::remove_dir_all(book).unwrap();
        let lines: Vec<_> = failure.lines().skip(1).map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "docs/lost.md: not in docs/SUMMARY.md",
                "docs/decisions/undated.md: no `*Accepted, 2026-11-18.*` below its title",
                "README.html: a/page.html#gone",
                "README.html: x.svg",
                "a/page.html: unknown to the search",
            ]
        );
    }
}
