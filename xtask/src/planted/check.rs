//! Runs one check, with a bug or without.

use super::bug::Bug;
use super::built::Built;
use super::cases::Test;
use super::pairs::Pair;
use crate::step;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const VARIABLE: &str = "SEMEL_PLANTED_BUG";

/// A test that has not ended by then has failed: some bugs leave it waiting for what never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The same where the test has just passed in its usual time.
pub(crate) const BRIEF_PATIENCE: Duration = Duration::from_secs(30);

/// A campaign heals for up to two minutes where a bug keeps it from it, and is judged then.
const CAMPAIGN_PATIENCE: Duration = Duration::from_secs(600);

/// What the campaign says of a bug.
pub(crate) enum Noticed {
    /// Invariants were violated, with so many operations.
    After { operations: u32, invariants: Vec<String>, took: Duration },
    /// Nothing was, with so many.
    NotWithin(u32),
    /// With so many it ended, or was ended, before it had judged: that says nothing.
    NoVerdict(u32),
}

pub(crate) struct Runner {
    built: Built,
    settings: Vec<(&'static str, String)>,
    patience: Duration,
    campaigns_passed: HashSet<Vec<String>>,
}

struct Ran {
    success: bool,
    took: Duration,
    said: String,
}

impl Runner {
    pub(crate) fn new(built: Built, settings: Vec<(&'static str, String)>, patience: Duration) -> Self {
        Self { built, settings, patience, campaigns_passed: HashSet::new() }
    }

    /// Makes sure that a test passes where no bug is planted.
    pub(crate) fn passes(&self, test: &Test) -> Result<(), String> {
        let ran = self.test(test, None)?;
        if !ran.success || !ran.said.contains("1 passed") {
            return Err(format!("{test} does not pass without a bug:\n{}", ran.said));
        }
        Ok(())
    }

    /// How long the test took to fail with the bug; `None`: it passed.
    pub(crate) fn fails(&self, test: &Test, bug: Bug) -> Result<Option<Duration>, String> {
        let ran = self.test(test, Some(bug))?;
        Ok((!ran.success).then_some(ran.took))
    }

    /// Tries the campaign with more and more operations until it notices.
    pub(crate) fn campaign(&mut self, bug: Bug, pair: &Pair) -> Result<Noticed, String> {
        for operations in pair.operations() {
            let arguments = pair.arguments(operations);
            if !self.campaigns_passed.contains(&arguments) {
                let ran = self.run_campaign(&arguments, None)?;
                if !has_no_violations(&ran.said) {
                    return Err(format!("the campaign does not pass without a bug:\n{}", ran.said));
                }
                self.campaigns_passed.insert(arguments.clone());
            }
            let ran = self.run_campaign(&arguments, Some(bug))?;
            let mut invariants: Vec<String> = violated(&ran.said).collect();
            invariants.sort();
            invariants.dedup();
            if !invariants.is_empty() {
                return Ok(Noticed::After { operations, invariants, took: ran.took });
            }
            if !has_no_violations(&ran.said) {
                return Ok(Noticed::NoVerdict(operations));
            }
        }
        Ok(Noticed::NotWithin(pair.within))
    }

    fn test(&self, test: &Test, bug: Option<Bug>) -> Result<Ran, String> {
        let mut command = Command::new(self.built.program(test.place)?);
        command.args(["--exact", test.name]).current_dir(test.package());
        self.run(&mut command, bug, self.patience)
    }

    fn run_campaign(&self, arguments: &[String], bug: Option<Bug>) -> Result<Ran, String> {
        let mut command = Command::new(self.built.program("semel-campaign")?);
        command.args(arguments);
        self.run(&mut command, bug, CAMPAIGN_PATIENCE)
    }

    fn run(&self, command: &mut Command, bug: Option<Bug>, patience: Duration) -> Result<Ran, String> {
        let failed = |error: std::io::Error| format!("a check could not be run: {error}");
        // Into a file: a pipe would have to be read while it runs.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("semel-planted-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).map_err(failed)?;
        let path = directory.join("said");
        let said = File::create(&path).map_err(failed)?;
        // What a failing check leaves behind, for whoever looks into it, is not wanted here.
        command
            .env("TMPDIR", &directory)
            .envs(self.settings.iter().map(|(name, value)| (*name, value)))
            .env_remove(VARIABLE);
        command.envs(bug.map(|bug| (VARIABLE, bug.name())));
        command.stdin(Stdio::null()).stdout(said.try_clone().map_err(failed)?).stderr(said);
        let begun = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break Some(status);
            }
            if begun.elapsed() > patience {
                child.kill().map_err(failed)?;
                child.wait().map_err(failed)?;
                break None;
            }
            thread::sleep(Duration::from_millis(10));
        };
        let took = begun.elapsed();
        let mut said = Vec::new();
        File::open(&path).and_then(|mut file| file.read_to_end(&mut said)).map_err(failed)?;
        // A process that was ended from outside may leave others that still write there.
        let _ = fs::remove_dir_all(&directory);
        let success = status.is_some_and(|status| status.success());
        Ok(Ran { success, took, said: String::from_utf8_lossy(&said).into_owned() })
    }
}

/// Whether the campaign has judged, and had nothing to object to. How many had an answer in time is a question of the machine, and not
/// of bugs; what is told while it runs is no verdict.
fn has_no_violations(said: &str) -> bool {
    said.contains(" % definite, 0 violations, ")
}

/// Which of the campaign's invariants were violated, as it prints them.
fn violated(said: &str) -> impl Iterator<Item = String> + '_ {
    said.lines().filter_map(|line| line.trim().strip_prefix("VIOLATION ")).map(|violation| {
        let name = violation.split([' ', ':']).next().unwrap_or_default();
        name.to_owned()
    })
}

impl Test {
    /// Where its package is.
    fn package(&self) -> std::path::PathBuf {
        let place = self.place.split("/tests/").next().unwrap_or_default();
        step::root().join(place.strip_suffix("/src").unwrap_or(place))
    }

    /// Whether there is such a test. A rule of the conformance kit is named in the kit.
    #[cfg(test)]
    pub(super) fn is_there(&self) -> bool {
        fn look(place: &std::path::Path, declaration: &str) -> bool {
            let Ok(entries) = std::fs::read_dir(place) else {
                return std::fs::read_to_string(place).is_ok_and(|text| text.contains(declaration));
            };
            entries.flatten().any(|entry| look(&entry.path(), declaration))
        }
        let function = self.name.rsplit("::").next().unwrap_or_default();
        let places = match self.place.strip_suffix("/tests/conformance") {
            Some(_) => [step::root().join("crates/semel-conformance/src/rules"), self.package()],
            None => [step::root().join(self.place), step::root().join(format!("{}.rs", self.place))],
        };
        places.iter().any(|place| look(place, &format!("fn {function}(")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_campaign_that_has_judged_has_a_verdict() {
        let progress = "SQLite: 80 of 100 operations, 9/s, 1 faults, 0 violations, 0 min gone, 0 min to go\n";
        let judged = |violations: u32| {
            format!(
                "{progress}SQLite, seed 1 (usual, as it comes): 100 operations, 1 faults, 97 % definite, {violations} violations, 9 s\n"
            )
        };
        assert!(
            !has_no_violations(progress) && has_no_violations(&judged(0)) && !has_no_violations(&judged(10))
        );
        let said = judged(2) + "  VIOLATION I1: two charges\n  VIOLATION I3 of a key\n";
        assert_eq!(violated(&said).collect::<Vec<_>>(), ["I1", "I3"]);
    }
}
