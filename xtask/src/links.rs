//! The links between the project's pages: a link to a file that is not there fails.

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
        for (line, target) in targets(&text).filter(|(_, target)| !folder.join(target).exists()) {
            broken.push(format!("  {}:{line}: {target}", page.strip_prefix(root).unwrap_or(page).display()));
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(format!("links: these lead nowhere:\n{}", broken.join("\n"))) }
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

/// The files that `[…](file#part)` names, with their lines. What stands in a code block or in backticks is no link.
fn targets(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let prose = text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    prose.flat_map(|(index, line)| {
        let outside = |at: usize| line[..at].matches('`').count() % 2 == 0;
        line.match_indices("](").filter(move |&(at, _)| outside(at)).filter_map(move |(at, _)| {
            let (target, _) = line[at + 2..].split_once(')')?;
            let (file, _) = target.split_once('#').unwrap_or((target, ""));
            let ours = !file.is_empty() && !file.contains("://") && !file.starts_with("mailto:");
            ours.then_some((index + 1, file))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_to_files_count() {
        let text = "[a](a.md) and [`b`](../b.md#part), [out](https://example.com/), [here](#here)\n\
                    ```\n[no](code.md)\n```\n\
                    `[no](quoted.md)` but ![yes](picture.svg)\n";
        let found: Vec<_> = targets(text).collect();
        assert_eq!(found, [(1, "a.md"), (1, "../b.md"), (5, "picture.svg")]);
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named_with_page_and_line() {
        let root = std::env::temp_dir().join(format!("semel-links-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("README.md"), "[docs](docs/page.md)\n").unwrap();
        fs::write(root.join("docs/page.md"), "[back](../README.md)\n\n[gone](gone.md)\n").unwrap();
        let failure = check(&root).unwrap_err();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            failure,
            format!("links: these lead nowhere:\n  {}:3: gone.md", Path::new("docs/page.md").display())
        );
    }
}
