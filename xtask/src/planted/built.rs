//! The programs of the copy: built, and found by what cargo tells of them.

use super::patch::Test;
use super::tree::Tree;
use crate::step::FEATURES;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

    pub(crate) fn program(&self, place: &str) -> Result<&Path, String> {
        let program = self.programs.get(place).map(PathBuf::as_path);
        program.ok_or_else(|| format!("cargo built nothing for {place}"))
    }
}

/// Builds, and finds out what.
fn built(building: &mut Command, root: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    building.arg("--message-format=json-render-diagnostics").env("CARGO_TERM_QUIET", "true");
    building.stdin(Stdio::null()).stderr(Stdio::inherit());
    let built = building.output().map_err(|error| format!("cargo could not be started: {error}"))?;
    if !built.status.success() {
        return Err("the copy could not be built; what cargo printed above says why".into());
    }
    let told = String::from_utf8_lossy(&built.stdout);
    Ok(told.lines().filter_map(|line| program(line, root)).collect())
}

/// The program that a message of cargo's is about, if it is about one. Cargo writes each message as one line, without white space
/// between its parts, so that this needs no reader of JSON.
fn program(message: &str, root: &Path) -> Option<(String, PathBuf)> {
    let program = after(message, "\"executable\":\"")?;
    let package =
        Path::new(after(message, "\"manifest_path\":\"")?).parent()?.strip_prefix(root).ok()?.display();
    let target = message.split_once("\"target\":{")?.1;
    let name = after(target, "\"name\":\"")?;
    let profile = message.split_once("\"profile\":{")?.1.split('}').next()?;
    let place = match (profile.contains("\"test\":true"), after(target, "\"kind\":[\"")?) {
        (true, "lib") => format!("{package}/src"),
        (true, "test") => format!("{package}/tests/{name}"),
        (true, _) => return None,
        (false, _) => name.to_owned(),
    };
    Some((place, program.into()))
}

fn after<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_place() {
        let message = |kind: &str, name: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/semel/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}","test":true}},"profile":{{"opt_level":"0","test":{test}}},"executable":"/t/{name}-1"}}"#
            )
        };
        let place =
            |kind, name, test| program(&message(kind, name, test), Path::new("/w")).map(|(place, _)| place);
        assert_eq!(place("lib", "semel", true).as_deref(), Some("crates/semel/src"));
        assert_eq!(place("test", "engine", true).as_deref(), Some("crates/semel/tests/engine"));
        assert_eq!(place("bin", "semel", false).as_deref(), Some("semel"));
        assert_eq!(place("bin", "semel", true), None, "the tests inside a program are none of these");
        assert!(program(r#"{"reason":"build-finished","executable":null}"#, Path::new("/w")).is_none());
    }
}
