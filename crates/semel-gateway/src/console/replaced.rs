//! What the last reload changed.

use jiff::Timestamp;

/// The configuration that was in force before the last reload, without secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplacedConfig {
    at: Timestamp,
    shown: String,
}

impl ReplacedConfig {
    /// It is replaced now.
    #[must_use]
    pub fn now(shown: &str) -> Self {
        Self { at: Timestamp::now(), shown: shown.to_owned() }
    }

    pub(super) fn at(&self) -> String {
        self.at.to_string()
    }

    /// The lines that are gone (`-`) and those that are new (`+`), section by section.
    pub(super) fn difference(&self, new: &str) -> Vec<String> {
        let (before, after) = (qualified(&self.shown), qualified(new));
        let gone = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
        let added = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
        gone.chain(added).collect()
    }
}

/// Each setting with its section: one line may be in several.
fn qualified(text: &str) -> Vec<String> {
    let (mut section, mut lines) = (String::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty()) {
        if line.starts_with('[') {
            line.clone_into(&mut section);
        } else {
            lines.push(format!("{section} {line}").trim().to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_says_which_section_it_is_in() {
        let before = ReplacedConfig::now("a = 1\n\n[logs]\nlevel = \"info\"\n");
        let after = "a = 1\n\n[logs]\nlevel = \"debug\"\n[limits]\nconnections = 3\n";
        assert_eq!(
            before.difference(after),
            ["- [logs] level = \"info\"", "+ [logs] level = \"debug\"", "+ [limits] connections = 3"]
        );
        assert!(before.difference("a = 1\n[logs]\nlevel = \"info\"\n").is_empty());
    }
}
