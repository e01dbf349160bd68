//! All tests of the workspace: built once, and run a few programs at a time, for most of them wait more than they work.

use crate::executables::{self, Executable, Kind};
use crate::side_by_side::side_by_side;
use crate::step::{self, FEATURES, Outcome, cargo, root};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// The simulator's test that takes a minute and chooses its seeds by the clock.
const FRESH_SEEDS: &str = "a_minute_of_seeds_that_nobody_has_seen";

/// The test programs of the workspace.
pub(crate) struct Suite {
    programs: Vec<Executable>,
    settings: Vec<(&'static str, String)>,
}

impl Suite {
    /// Builds libraries, binaries and integration tests with their tests. Benchmarks measure, and belong in `cargo xtask bench`.
    pub(crate) fn build(settings: Vec<(&'static str, String)>) -> Result<Self, String> {
        let mut building = cargo(["test", "--no-run", "--workspace", "--tests"]);
        let mut programs = executables::build(building.args(FEATURES), &root())?;
        programs.retain(|program| program.kind != Kind::Binary);
        // The programs that take longest are those of xtask, proof and the larger crates: they should not begin last.
        programs.sort_by_key(|program| std::cmp::Reverse(program.place()));
        Ok(Self { programs, settings })
    }

    /// Runs every program, whatever the others come to, and shows what those printed that failed.
    pub(crate) fn run(&self) -> Outcome {
        let at_once = 1 + thread::available_parallelism().map_or(1, usize::from);
        let failed = side_by_side(at_once, &self.programs, |program| {
            let start = Instant::now();
            let mut command = self.command(program);
            let ran = command.stdin(Stdio::null()).output();
            let ran =
                ran.map_err(|error| format!("{} could not be started: {error}", program.path.display()))?;
            let printed = String::from_utf8_lossy(&ran.stdout);
            let took = step::seconds(start.elapsed());
            if ran.status.success() {
                let result = printed.lines().rfind(|line| line.starts_with("test result:"));
                println!("{}: {} ({took})", program.place(), result.unwrap_or("ran no test"));
                return Ok(None);
            }
            let errors = String::from_utf8_lossy(&ran.stderr);
            println!("{}: failed ({}, {took})\n{printed}{errors}", program.place(), ran.status);
            Ok(Some(program.place()))
        })?;
        let failed: Vec<_> = failed.into_iter().flatten().collect();
        if failed.is_empty() {
            return Ok(());
        }
        Err(format!("these tests failed; what they printed is above: {}", failed.join(", ")))
    }

    /// Lets the simulator draw its seeds for a minute.
    pub(crate) fn fresh_seeds(&self) -> Outcome {
        let simulator = self.programs.iter().find(|program| program.place() == "proof/simulator/tests/seeds");
        let mut command = self.command(simulator.ok_or("the tests of proof/simulator were not built")?);
        command.args(["--ignored", "--exact", FRESH_SEEDS, "--nocapture"]);
        let what = "a minute of new seeds";
        step::timed("simulator", what, || match command.status() {
            Ok(status) if status.success() => Ok(()),
            _ => Err("the simulator found something: the seed is above".into()),
        })
    }

    /// The program of this place, as [`run`](Self::run) starts it.
    pub(crate) fn command_of(&self, place: &str) -> Result<Command, String> {
        let program = self.programs.iter().find(|program| program.place() == place);
        program.map(|program| self.command(program)).ok_or_else(|| format!("{place} was not built"))
    }

    /// The program as cargo would start it.
    fn command(&self, program: &Executable) -> Command {
        let directory = root().join(&program.package);
        let mut command = Command::new(&program.path);
        command.current_dir(&directory).env("CARGO_MANIFEST_DIR", &directory);
        command.env_remove("CARGO_PKG_NAME").envs(self.settings.clone());
        command
    }
}
