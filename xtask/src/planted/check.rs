//! Runs one check on programs of the copy.

use super::built::Built;
use super::campaign::Campaign;
use super::patch::Test;
use super::simulator::Simulator;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A test that has not ended by then has failed: some bugs leave it waiting for what never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// A campaign heals for up to two minutes where a bug keeps it from it, and is judged then.
const CAMPAIGN_PATIENCE: Duration = Duration::from_secs(900);

/// What the campaign says of a bug.
pub(crate) enum Noticed {
    /// Invariants were violated, with so many operations.
    After { operations: u32, invariants: Vec<String>, took: Duration },
    /// Nothing was, with so many.
    NotWithin(u32),
    /// With so many it ended, or was ended, before it had judged: that says nothing.
    NoVerdict(u32),
}

pub(crate) struct Runner<'t> {
    pub(crate) root: PathBuf,
    pub(crate) settings: &'t [(&'static str, String)],
}

struct Ran {
    success: bool,
    took: Duration,
    said: String,
}

impl Runner<'_> {
    /// Makes sure that a test passes where no bug is planted.
    pub(crate) fn passes(&self, built: &Built, test: &Test) -> Result<(), String> {
        let ran = self.test(built, test)?;
        if !ran.success || !ran.said.contains("1 passed") {
            return Err(format!("{test} does not pass without a bug:\n{}", ran.said));
        }
        Ok(())
    }

    /// How long the test took to fail with the bug; `None`: it passed.
    pub(crate) fn fails(&self, built: &Built, test: &Test) -> Result<Option<Duration>, String> {
        let ran = self.test(built, test)?;
        if ran.success && !ran.said.contains("1 passed") {
            return Err(format!("{test}: there is no such test\n{}", ran.said));
        }
        Ok((!ran.success).then_some(ran.took))
    }

    /// Makes sure that a campaign finds nothing where no bug is planted.
    pub(crate) fn campaign_passes(&self, built: &Built, campaign: &Campaign) -> Result<(), String> {
        let ran = self.run_campaign(built, &campaign.arguments(campaign.within))?;
        if !has_no_violations(&ran.said) {
            return Err(format!("the campaign `{campaign}` does not pass without a bug:\n{}", ran.said));
        }
        Ok(())
    }

    /// Tries the campaign with more and more operations until it notices.
    pub(crate) fn campaign(&self, built: &Built, campaign: &Campaign) -> Result<Noticed, String> {
        for operations in campaign.operations() {
            let ran = self.run_campaign(built, &campaign.arguments(operations))?;
            let mut invariants: Vec<String> = violated(&ran.said).collect();
            invariants.sort();
            invariants.dedup();
            if !invariants.is_empty() {
                return Ok(Noticed::After { operations, invariants, took: ran.took });
            }
            if !has_no_violations(&ran.said) {
                println!("{}", ran.said);
                return Ok(Noticed::NoVerdict(operations));
            }
        }
        Ok(Noticed::NotWithin(campaign.within))
    }

    /// Makes sure that the simulator finds nothing by these settings where no bug is planted.
    pub(crate) fn simulator_passes(&self, built: &Built, simulator: &Simulator) -> Result<(), String> {
        match self.simulator(built, simulator)? {
            Noticed::NotWithin(_) => Ok(()),
            _ => Err(format!(
                "the simulator does not pass without a bug: `{}`",
                simulator.arguments().join(" ")
            )),
        }
    }

    /// Runs the simulator's first seeds until it notices.
    pub(crate) fn simulator(&self, built: &Built, simulator: &Simulator) -> Result<Noticed, String> {
        let mut command = Command::new(built.program("semel-simulator")?);
        command.args(simulator.arguments());
        let ran = self.run(command.current_dir(&self.root), CAMPAIGN_PATIENCE)?;
        let mut invariants: Vec<String> = violated(&ran.said).collect();
        invariants.sort();
        invariants.dedup();
        let limit = simulator.within;
        let after =
            ran.said.lines().find_map(|line| line.strip_suffix(" operations until then")?.parse().ok());
        Ok(match after {
            Some(operations) if !invariants.is_empty() => {
                Noticed::After { operations, invariants, took: ran.took }
            }
            _ if ran.success => Noticed::NotWithin(limit),
            _ => Noticed::NoVerdict(limit),
        })
    }

    fn test(&self, built: &Built, test: &Test) -> Result<Ran, String> {
        let mut command = Command::new(built.program(&test.place)?);
        command.args(["--exact", &test.name]).current_dir(self.root.join(test.package()));
        self.run(&mut command, PATIENCE)
    }

    fn run_campaign(&self, built: &Built, arguments: &[String]) -> Result<Ran, String> {
        let mut command = Command::new(built.program("semel-campaign")?);
        command.args(arguments).current_dir(&self.root);
        self.run(&mut command, CAMPAIGN_PATIENCE)
    }

    fn run(&self, command: &mut Command, patience: Duration) -> Result<Ran, String> {
        let failed = |error: std::io::Error| format!("a check could not be run: {error}");
        // Into a file: a pipe would have to be read while it runs.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("semel-planted-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).map_err(failed)?;
        let path = directory.join("said");
        let said = File::create(&path).map_err(failed)?;
        // What a failing check leaves behind, for whoever looks into it, is not wanted here.
        command.env("TMPDIR", &directory).envs(self.settings.iter().map(|(name, value)| (*name, value)));
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
