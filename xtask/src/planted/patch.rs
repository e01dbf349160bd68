//! A planted bug: `proof/planted/NAME.patch`, a patch of production sources with a header that says what it breaks and who notices.

use super::campaign::Campaign;
use super::simulator::Simulator;
use crate::step;
use std::fmt;
use std::path::{Path, PathBuf};

/// Before the test that fails with the bug.
const NOTICED_BY: &str = "Noticed-by: ";
/// Before the settings of the campaign that notices the bug.
const CAMPAIGN: &str = "Campaign: ";
/// Before the reason why no campaign can notice the bug.
const NO_CAMPAIGN: &str = "No-campaign: ";
/// Before the number of operations within which the simulator notices the bug, and its settings.
const SIMULATOR: &str = "Simulator: ";
/// Before the reason why the simulator cannot notice the bug.
const NO_SIMULATOR: &str = "No-simulator: ";

/// One planted bug.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) name: String,
    /// What the bug does, in one line.
    pub(crate) what: String,
    /// Every one of these tests passes without the bug and fails with it. The quickest stands first.
    pub(crate) tests: Vec<Test>,
    /// The campaign that notices the bug, where a running system can show it.
    pub(crate) campaign: Option<Campaign>,
    /// Why no campaign can notice it.
    pub(crate) no_campaign: Option<String>,
    /// How the simulator notices the bug, where it concerns what is simulated.
    pub(crate) simulator: Option<Simulator>,
    /// Why it cannot, where it does not.
    pub(crate) no_simulator: Option<String>,
    /// The files it changes, relative to the root.
    pub(crate) files: Vec<String>,
    /// Where the patch is.
    pub(crate) path: PathBuf,
}

/// A test, by the place of its program (`crates/semel/tests/engine`; `crates/semel/src` for unit tests) and its name there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Test {
    pub(crate) place: String,
    pub(crate) name: String,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.place, self.name)
    }
}

impl Test {
    /// The directory of its package, relative to the root.
    pub(crate) fn package(&self) -> &str {
        let place = self.place.split("/tests/").next().unwrap_or_default();
        place.strip_suffix("/src").unwrap_or(place)
    }

    /// The name of its program; `None` for unit tests.
    pub(crate) fn program(&self) -> Option<&str> {
        self.place.split_once("/tests/").map(|(_, name)| name)
    }
}

/// Where the patches are.
pub(crate) fn directory() -> PathBuf {
    step::root().join("proof/planted")
}

/// All of them, by name.
pub(crate) fn all() -> Result<Vec<Patch>, String> {
    let directory = directory();
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut patches = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "patch") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            patches.push(parse(&path, &text)?);
        }
    }
    patches.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(patches)
}

/// The patches of these names; without names, all of them.
pub(crate) fn named(names: &[String]) -> Result<Vec<Patch>, String> {
    let all = all()?;
    if names.is_empty() {
        return Ok(all);
    }
    let find = |name: &String| {
        all.iter().find(|patch| patch.name == *name).cloned().ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|patch| &*patch.name).collect();
            format!("no planted bug is called {name}; there are {}", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// The header of a patch, with the blank line after it.
pub(crate) fn header(text: &str) -> &str {
    text.find("diff --git ").map_or(text, |end| &text[..end])
}

fn parse(path: &Path, text: &str) -> Result<Patch, String> {
    let wrong = |what: &str| format!("{}: {what}", path.display());
    let name =
        path.file_stem().and_then(|name| name.to_str()).ok_or_else(|| wrong("its name is not text"))?;
    let header = header(text);
    let mut lines = header.lines().filter(|line| !line.is_empty());
    let what = lines.next().filter(|line| line.ends_with('.'));
    let what = what.ok_or_else(|| wrong("its first line has to say in a sentence what the bug does"))?;
    let (mut tests, mut campaign, mut no_campaign) = (Vec::new(), None, None);
    let (mut simulator, mut no_simulator) = (None, None);
    for line in lines {
        if let Some(test) = line.strip_prefix(NOTICED_BY) {
            let (place, name) = test.split_once(' ').ok_or_else(|| wrong("a test is `PLACE NAME`"))?;
            tests.push(Test { place: place.to_owned(), name: name.to_owned() });
        } else if let Some(settings) = line.strip_prefix(CAMPAIGN) {
            campaign = Some(Campaign::parse(settings).map_err(|error| wrong(&error))?);
        } else if let Some(why) = line.strip_prefix(NO_CAMPAIGN) {
            no_campaign = Some(why.to_owned());
        } else if let Some(settings) = line.strip_prefix(SIMULATOR) {
            simulator = Some(Simulator::parse(settings).map_err(|error| wrong(&error))?);
        } else if let Some(why) = line.strip_prefix(NO_SIMULATOR) {
            no_simulator = Some(why.to_owned());
        } else {
            return Err(wrong(&format!(
                "its header has `{NOTICED_BY}`, `{CAMPAIGN}` or `{NO_CAMPAIGN}`, and `{SIMULATOR}` or `{NO_SIMULATOR}`, and not {line:?}"
            )));
        }
    }
    if tests.is_empty() {
        return Err(wrong("a bug needs a test that notices it"));
    }
    let changed = |line: &str| Some(line.strip_prefix("--- ")?.split_once('/')?.1.to_owned());
    let files: Vec<String> = text.lines().filter_map(changed).collect();
    if files.is_empty() {
        return Err(wrong("it changes nothing"));
    }
    if campaign.is_some() == no_campaign.is_some() {
        return Err(wrong("it needs a campaign that notices it, or the reason why none can"));
    }
    if simulator.is_some() == no_simulator.is_some() {
        return Err(wrong("it needs settings of the simulator that notice it, or the reason why none can"));
    }
    let (name, what, path) = (name.to_owned(), what.to_owned(), path.to_owned());
    Ok(Patch { name, what, tests, campaign, no_campaign, simulator, no_simulator, files, path })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEXT: &str = "A fence is missing.\n\nNoticed-by: crates/a/src one::test\nNoticed-by: crates/a/tests/b two\n\
        Campaign: --store sqlite --only kill-shop --per-fault 15 --operations 1600\nSimulator: 3000 --only cut\n\n\
        diff --git a/crates/a/src/x.rs b/crates/a/src/x.rs\n--- a/crates/a/src/x.rs\n+++ b/crates/a/src/x.rs\n@@ -1 +1 @@\n-1\n+2\n";

    #[test]
    fn a_header_says_what_it_breaks_and_who_notices() {
        let patch = parse(Path::new("p/fence-missing.patch"), TEXT).unwrap();
        assert_eq!((&*patch.name, &*patch.what), ("fence-missing", "A fence is missing."));
        assert_eq!(patch.files, ["crates/a/src/x.rs"]);
        let tests: Vec<_> = patch.tests.iter().map(|test| (test.package(), test.program())).collect();
        assert_eq!(tests, [("crates/a", None), ("crates/a", Some("b"))]);
        assert!(patch.campaign.is_some() && patch.simulator == Simulator::parse("3000 --only cut").ok());
        assert!(header(TEXT).ends_with("--only cut\n\n"));
    }

    #[test]
    fn a_patch_that_nobody_notices_or_that_changes_nothing_is_refused() {
        let parse = |text: &str| parse(Path::new("p/x.patch"), text).unwrap_err();
        assert!(parse("It breaks.\n\ndiff --git a/x b/x\n--- a/x\n").contains("needs a test"));
        assert!(parse("It breaks.\n\nNoticed-by: crates/a/src one\n").contains("changes nothing"));
        assert!(parse("It breaks.\n\nNoticed by chance\n").contains("Noticed-by"));
        let both = TEXT.replace("Simulator:", "No-campaign: It does.\nSimulator:");
        let neither = TEXT.lines().filter(|line| !line.starts_with(CAMPAIGN)).collect::<Vec<_>>().join("\n");
        for text in [both, neither] {
            assert!(parse(&text).contains("needs a campaign"));
        }
        let both = TEXT.replace("Simulator:", "No-simulator: It does.\nSimulator:");
        let neither = TEXT.lines().filter(|line| !line.starts_with(SIMULATOR)).collect::<Vec<_>>().join("\n");
        for text in [both, neither] {
            assert!(parse(&text).contains("needs settings of the simulator"));
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_those_that_exist() {
        let told = named(&["lease-stolem".to_owned()]).unwrap_err();
        assert!(told.contains("lease-stolem") && told.contains("lease-stolen"), "{told}");
    }
}
