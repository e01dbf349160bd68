//! Programs on this machine: where they are, and what this process may do.

use super::variables::PYTHON_TOOLS;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directories in which programs are looked for.
#[must_use]
pub fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

/// The program of this name: in one of the directories, or on the search path.
pub(super) fn find(name: &str, directories: &[&str]) -> Option<PathBuf> {
    let directories = directories.iter().map(PathBuf::from).chain(search_path());
    directories.map(|directory| directory.join(name)).find(|program| program.is_file())
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// The directory for tools that do not come from the machine's package manager: `tools` in cargo's target directory. `None` for a
/// program that does not run from a target directory.
#[must_use]
pub fn tools() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    // Tests run from TARGET/PROFILE/deps, other programs from TARGET/PROFILE. Cargo marks a target directory as a cache if it made it
    // itself, and keeps what it knows of the compiler there in any case.
    let is_target = |directory: &&Path| {
        ["CACHEDIR.TAG", ".rustc_info.json"].into_iter().any(|name| directory.join(name).is_file())
    };
    let target = program.ancestors().find(is_target)?;
    Some(target.join("tools"))
}

/// The directory of the tools that are Python packages, with their `bin`: the one that [`PYTHON_TOOLS`] names, or `watching` in
/// [`tools`].
///
/// # Errors
/// They are not installed: what to run.
pub fn python_tools() -> Result<PathBuf, String> {
    let named = env::var_os(PYTHON_TOOLS).map(PathBuf::from);
    let directory = named.or_else(|| tools().map(|tools| tools.join("watching")));
    let installed = |directory: &PathBuf| directory.join("bin").is_dir();
    directory.filter(installed).ok_or_else(|| missing("the Python tools", PYTHON_TOOLS))
}

/// One line for whoever ran a test on a machine without what it needs.
pub(super) fn missing(what: &str, variable: &str) -> String {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_else(|_| "CRATE".into());
    format!(
        "{what} not found: run `cargo xtask test {package}`, which installs it or says how, or set {variable}"
    )
}
