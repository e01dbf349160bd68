//! The programs with the switch in them: built once, and found by what cargo tells of them.

use super::cases::Test;
use crate::step::{self, cargo};
use crate::test::FEATURES;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// What is to be built.
pub(crate) enum Selection<'t> {
    /// The programs of these tests, and the processes of the campaign, where nothing else was built.
    Alone(&'t [&'static Test]),
    /// As in `cargo xtask test`: nothing is built again.
    WithTheTests,
}

/// Packages whose tests are named in `cases.rs`, and those of the campaign's processes.
const PACKAGES: [&str; 11] = [
    "semel",
    "semel-model",
    "semel-sqlite",
    "semel-postgres",
    "semel-tower",
    "semel-gateway",
    "semel-worker",
    "semel-events",
    "semel-cli",
    "payment-provider",
    "semel-campaign",
];

/// With these tests the gateway, the provider and the campaign are built, which they start.
const WITH_PROGRAMS: [&str; 3] = ["settling", "provider", "short"];

impl Selection<'_> {
    fn arguments(&self) -> Vec<&'static str> {
        let Self::Alone(tests) = self else { return vec!["--workspace", "--tests"] };
        let named: BTreeSet<_> = tests
            .iter()
            .filter_map(|test| Some(test.place.split_once("/tests/")?.1))
            .chain(WITH_PROGRAMS)
            .collect();
        let packages = PACKAGES.iter().flat_map(|package| ["-p", package]);
        packages.chain(["--lib"]).chain(named.into_iter().flat_map(|name| ["--test", name])).collect()
    }
}

/// Test programs by their place (`crates/semel-tower/tests/http`, `crates/semel/src`), and others by their name.
pub(crate) struct Built {
    programs: HashMap<String, PathBuf>,
}

impl Built {
    pub(crate) fn of(selection: &Selection<'_>) -> Result<Self, String> {
        let mut building = cargo(["test", "--no-run", "--message-format=json-render-diagnostics"]);
        building.args(selection.arguments()).args(FEATURES).stdin(Stdio::null()).stderr(Stdio::inherit());
        let built = building.output().map_err(|error| format!("cargo could not be started: {error}"))?;
        if !built.status.success() {
            return Err("the tests could not be built; what cargo printed above says why".into());
        }
        let root = step::root();
        let told = String::from_utf8_lossy(&built.stdout);
        Ok(Self { programs: told.lines().filter_map(|line| program(line, &root)).collect() })
    }

    pub(crate) fn program(&self, place: &str) -> Result<&Path, String> {
        let program = self.programs.get(place).map(PathBuf::as_path);
        program.ok_or_else(|| format!("cargo built nothing for {place}"))
    }
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
