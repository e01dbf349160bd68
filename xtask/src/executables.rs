//! What cargo builds: test programs and binaries, found by the messages that cargo prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An executable that cargo built for a package of the workspace.
#[derive(Debug, PartialEq)]
pub(crate) struct Executable {
    /// The package's directory, relative to the workspace: `crates/semel-tower`.
    pub(crate) package: String,
    pub(crate) kind: Kind,
    /// Of the target: `http` for `tests/http`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The tests inside a library.
    UnitTests,
    /// The tests inside a binary.
    BinaryTests,
    /// A program in `tests/`.
    IntegrationTest,
    Binary,
}

impl Executable {
    /// Where it comes from: `crates/semel-tower/tests/http`, `crates/semel/src`; for a binary, its name.
    pub(crate) fn place(&self) -> String {
        let Self { package, name, .. } = self;
        match self.kind {
            Kind::UnitTests => format!("{package}/src"),
            Kind::BinaryTests => format!("{package}/src/main.rs"),
            Kind::IntegrationTest => format!("{package}/tests/{name}"),
            Kind::Binary => name.clone(),
        }
    }
}

/// Runs a build, and lists what it made. What the compiler says goes through.
pub(crate) fn build(building: &mut Command, root: &Path) -> Result<Vec<Executable>, String> {
    building.arg("--message-format=json-render-diagnostics").env("CARGO_TERM_QUIET", "true");
    building.stdin(Stdio::null()).stderr(Stdio::inherit());
    let built = building.output().map_err(|error| format!("cargo could not be started: {error}"))?;
    if !built.status.success() {
        return Err("the build failed; what cargo printed above says why".into());
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    Ok(messages.lines().filter_map(|line| executable(line, root)).collect())
}

/// The executable that a message of cargo's is about, if it is about one. Cargo writes each message as one line, without white space
/// between its parts, so that this needs no reader of JSON.
fn executable(message: &str, root: &Path) -> Option<Executable> {
    let path = after(message, "\"executable\":\"")?;
    let manifest = Path::new(after(message, "\"manifest_path\":\"")?);
    let package = manifest.parent()?.strip_prefix(root).ok()?.display().to_string();
    let target = message.split_once("\"target\":{")?.1;
    let name = after(target, "\"name\":\"")?.to_owned();
    let profile = message.split_once("\"profile\":{")?.1.split('}').next()?;
    let kind = match (profile.contains("\"test\":true"), after(target, "\"kind\":[\"")?) {
        (true, "lib") => Kind::UnitTests,
        (true, "bin") => Kind::BinaryTests,
        (true, "test") => Kind::IntegrationTest,
        (true, _) => return None,
        (false, _) => Kind::Binary,
    };
    Some(Executable { package, kind, name, path: path.into() })
}

fn after<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executable_is_known_by_its_place() {
        let message = |kind: &str, name: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/semel/Cargo.toml","target":{{"kind":["{kind}"],"name":"{name}","test":true}},"profile":{{"opt_level":"0","test":{test}}},"executable":"/t/{name}-1"}}"#
            )
        };
        let place = |kind, name, test| {
            executable(&message(kind, name, test), Path::new("/w")).map(|executable| executable.place())
        };
        assert_eq!(place("lib", "semel", true).as_deref(), Some("crates/semel/src"));
        assert_eq!(place("test", "engine", true).as_deref(), Some("crates/semel/tests/engine"));
        assert_eq!(place("bin", "semel", true).as_deref(), Some("crates/semel/src/main.rs"));
        assert_eq!(place("bin", "semel", false).as_deref(), Some("semel"));
        assert_eq!(place("example", "hello", true), None);
        assert!(executable(r#"{"reason":"build-finished","executable":null}"#, Path::new("/w")).is_none());
    }
}
