//! The libraries that payment APIs give to their users, and what drives a browser, in a directory of their own below cargo's target directory.

use crate::install::may_install;
use crate::step::{Outcome, succeeds};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

/// At the versions that the tests were written with.
const PYTHON: [&str; 2] = ["stripe==16.1.0", "squareup==46.0.0.20260916"];
const NODE: [&str; 4] =
    ["stripe@23.1.0", "@mollie/api-client@4.6.0", "playwright-core@1.65.1", "axe-core@4.14.1"];

/// What says that all of them are there, at these versions.
const DONE: &str = "semel-packages";

/// Makes sure that they are there.
pub(crate) fn provide() -> Outcome {
    let place = semel_testing::servers::tools().ok_or("this program does not know where it is")?.join("sdks");
    let wanted = [PYTHON.join(" "), NODE.join(" ")].join(" ");
    let done = place.join(DONE);
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let missing = format!("{wanted} is missing: the gateway is tested with it");
    let (python, node) = (place.join("python"), place.join("node"));
    if !may_install() {
        return Err(format!(
            "{missing}. Run `python3 -m venv {python} && {python}/bin/pip install {} && npm install --prefix {node} {} && \
             printf '{wanted}' > {}`; as root on Debian it would be done for you",
            PYTHON.join(" "),
            NODE.join(" "),
            done.display(),
            python = python.display(),
            node = node.display(),
        ));
    }
    println!("    {missing}. Putting it into {}.", place.display());
    install(&python, &node)
        .map_err(|step| format!("{missing}, and `{step}` failed in {}", place.display()))?;
    fs::write(&done, wanted).map_err(|error| format!("{}: {error}", done.display()))
}

/// Provides them beside other steps: downloading is mostly waiting.
pub(crate) fn begin() -> JoinHandle<Outcome> {
    thread::spawn(provide)
}

/// Which step failed, if one did. What it says itself is worth reading then.
fn install(python: &Path, node: &PathBuf) -> Result<(), &'static str> {
    fs::create_dir_all(node).map_err(|_| "mkdir")?;
    if !succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(python)) {
        return Err("python3 -m venv");
    }
    let mut pip = Command::new(python.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PYTHON);
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix"])
        .arg(node)
        .args(NODE);
    for (mut step, name) in [(pip, "pip install"), (npm, "npm install")] {
        if !step.status().is_ok_and(|status| status.success()) {
            return Err(name);
        }
    }
    Ok(())
}
