//! The programs of the copy: built, and found by what cargo tells of them.

use super::patch::Test;
use super::tree::Tree;
use crate::executables::{self, Kind};
use crate::step::FEATURES;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

/// With these tests the gateway, the provider and the campaign are built, which a campaign starts.
const WITH_PROGRAMS: [&str; 3] = ["settling", "provider", "short"];

/// With this test the simulator is built.
const WITH_SIMULATOR: &str = "seeds";

/// Test programs by their place (`crates/semel-tower/tests/http`, `crates/semel/src`), and others by their name.
pub(crate) struct Built {
    programs: HashMap<String, PathBuf>,
}

impl Built {
    /// Builds the programs of these tests, and of a campaign and the simulator if they are to be run.
    pub(crate) fn of(tree: &Tree, tests: &[&Test], campaign: bool, simulator: bool) -> Result<Self, String> {
        let mut programs = HashMap::new();
        // With the features of the whole workspace, as in the tests: so third-party crates are those that were built for them.
        let mut names: BTreeSet<_> = tests.iter().filter_map(|test| test.program()).collect();
        let needs_programs = campaign || tests.iter().any(|test| test.package() == "crates/semel-cli");
        names.extend(WITH_PROGRAMS.iter().filter(|_| needs_programs));
        names.extend(Some(WITH_SIMULATOR).filter(|_| simulator));
        if !names.is_empty() {
            let mut building = tree.cargo(["test", "--no-run", "--workspace"]);
            building.args(FEATURES).args(names.into_iter().flat_map(|name| ["--test", name]));
            programs.extend(built(&mut building, tree.root())?);
        }
        // Unit tests: `--lib` of the whole workspace would build those of every crate.
        let packages: BTreeSet<_> =
            tests.iter().filter(|test| test.program().is_none()).map(|test| test.package()).collect();
        for package in packages {
            let mut building = tree.cargo(["test", "--no-run", "--lib", "--manifest-path"]);
            building.arg(tree.root().join(package).join("Cargo.toml"));
            programs.extend(built(&mut building, tree.root())?);
        }
        Ok(Self { programs })
    }

    /// Builds the simulator alone.
    pub(crate) fn simulator(tree: &Tree) -> Result<Self, String> {
        let mut building = tree.cargo(["build", "--package", "semel-simulator"]);
        Ok(Self { programs: built(&mut building, tree.root())?.into_iter().collect() })
    }

    pub(crate) fn program(&self, place: &str) -> Result<&Path, String> {
        let program = self.programs.get(place).map(PathBuf::as_path);
        program.ok_or_else(|| format!("cargo built nothing for {place}"))
    }
}

/// Builds, and lists what was built by its place.
fn built(building: &mut Command, root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let built = executables::build(building, root)?.into_iter();
    // The tests inside a binary would be found where the binary is.
    let built = built.filter(|executable| executable.kind != Kind::BinaryTests);
    Ok(built.map(|executable| (executable.place(), executable.path)).collect())
}
