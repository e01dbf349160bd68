//! Tools that come as Python packages, in a directory of their own below cargo's target directory.

use crate::install::may_install;
use crate::step::{Outcome, succeeds};
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};

/// At the versions that the tests were written with: what tries the admin API, OpenTelemetry's own types, and a
/// client for gRPC.
const PACKAGES: [&str; 4] =
    ["schemathesis==4.32.5", "opentelemetry-proto==1.45.2", "grpcio==1.85.1", "grpcio-status==1.85.1"];

/// What says that all of them are there, at these versions.
const DONE: &str = "semel-packages";

/// Makes sure that they are there.
pub(crate) fn provide() -> Outcome {
    let place = place().ok_or("this program does not know where it is")?;
    let wanted = PACKAGES.join(" ");
    let done = place.join(DONE);
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let missing = format!("{wanted} is missing: the admin API, traces and gRPC are tested with it");
    if !may_install() {
        let python = place.display();
        return Err(format!(
            "{missing}. Run `python3 -m venv {python} && {python}/bin/pip install {wanted} && printf '{wanted}' > {}`; as root on \
             Debian it would be done for you",
            done.display()
        ));
    }
    println!("    {missing}. Putting it into {}.", place.display());
    let failed = |step: &str| format!("{missing}, and `{step}` failed in {}", place.display());
    if !succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place)) {
        return Err(failed("python3 -m venv"));
    }
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    // What it says is worth reading where it fails.
    if !pip.status().is_ok_and(|status| status.success()) {
        return Err(failed("pip install"));
    }
    std::fs::write(&done, wanted).map_err(|error| format!("{}: {error}", done.display()))
}

/// Provides them beside other steps: downloading is mostly waiting.
pub(crate) fn begin() -> JoinHandle<Outcome> {
    thread::spawn(provide)
}

fn place() -> Option<PathBuf> {
    Some(semel_testing::servers::tools()?.join("watching"))
}
