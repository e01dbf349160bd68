//! The links between the project's pages: a link to a file or heading that is not there fails.

use crate::step::Outcome;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Checks every relative link of every page under the root. Links out of the project are not followed: a test must not
/// fail because somebody else's server is down.
pub(crate) fn check(root: &Path) -> Outcome {
    let mut pages = Vec::new();
    collect(root, &mut pages).map_err(|error| format!("links: the pages cannot be listed: {error}"))?;
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).map_err(|error| format!("links: {}: {error}", page.display()))?;
        let folder = page.parent().unwrap_or(root);
        for (line, target) in targets(&text).filter(|(_, target)| !leads_somewhere(page, folder, target)) {
            broken.push(format!("  {}:{line}: {target}", page.strip_prefix(root).unwrap_or(page).display()));
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("links: these lead nowhere:\n{}", broken.join("\n"))) }
}

/// Whether a link's file exists and, if it is a page, has the heading that the link names.
fn leads_somewhere(page: &Path, folder: &Path, target: &str) -> bool {
    let (file, part) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_owned() } else { folder.join(file) };
    if part.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return file.exists();
    }
    fs::read_to_string(file)
        .is_ok_and(|text| prose(&text).any(|(_, line)| anchor(line).as_deref() == Some(part)))
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(line: &str) -> Option<String> {
    let heading = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))?;
    let kept =
        heading.trim().chars().filter(|character| character.is_alphanumeric() || " -_".contains(*character));
    Some(
        kept.map(|character| if character == ' ' { '-' } else { character })
            .collect::<String>()
            .to_lowercase(),
    )
}

fn collect(folder: &Path, pages: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.as_encoded_bytes().starts_with(b".") {
                collect(&path, pages)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(())
}

/// The lines that are not in a code block, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// What `[…](file#part)` names, with its line. What stands in a code block or in backticks is no link.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        let outside = |at: usize| line[..at].matches('`').count() % 2 == 0;
        line.match_indices("](").filter(move |&(at, _)| outside(at)).filter_map(move |(at, _)| {
            let (target, _) = line[at + 2..].split_once(')')?;
            let ours = !target.contains("://") && !target.starts_with("mailto:");
            ours.then_some((number, target))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_within_the_project_count() {
        let text = "[a](a.md) and [`b`](../b.md#part), [out](https://example.com/), [here](#here)\n\
                    ```\n[no](code.md)\n```\n\
                    `[no](quoted.md)` but ![yes](picture.svg)\n";
        let found: Vec<_> = targets(text).collect();
        assert_eq!(found, [(1, "a.md"), (1, "../b.md#part"), (1, "#here"), (5, "picture.svg")]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_page_and_line() {
        let root = std::env::temp_dir().join(format!("semel-links-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("README.md"), "[docs](docs/page.md#its-first-part) [docs](docs/page.md#gone)\n")
            .unwrap();
        fs::write(root.join("docs/page.md"), "## Its `first` part\n[back](../README.md)\n[gone](gone.md)\n")
            .unwrap();
        let failure = check(&root).unwrap_err();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            failure,
            format!(
                "links: these lead nowhere:\n  README.md:1: docs/page.md#gone\n  {}:3: gone.md",
                Path::new("docs/page.md").display()
            )
        );
    }
}
