//! Finds programs on the machine, or installs them where that is ours to do.
//!
//! As root on Debian (a container, a CI machine) a missing package is installed by name. Anywhere else nothing is
//! changed and the message says what to do.

use crate::step::{Outcome, succeeds};
use semel_testing::servers::is_root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Something outside of Rust.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// What it is for, so that nobody has to guess whether they need it.
    pub(crate) purpose: &'static str,
    pub(crate) packages: &'static [&'static str],
    pub(crate) present: fn() -> bool,
}

/// Makes sure that all of them are there: what is missing is installed in one go.
pub(crate) fn provide(tools: &[&Tool]) -> Outcome {
    let missing: Vec<&&Tool> = tools.iter().filter(|tool| !(tool.present)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted: Vec<String> = missing.iter().map(|tool| wanted(tool)).collect();
    let wanted = wanted.join("; ");
    let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages.iter().copied()).collect();
    let names = packages.join(" ");
    if !may_install() {
        return Err(format!(
            "{wanted}. Install it (Debian, Ubuntu: `apt-get install {names}`) and run this again; as root on \
             Debian it would be installed for you"
        ));
    }
    println!("    {wanted}. Installing {names}.");
    let _quiet = NothingStarts::while_installing();
    // One after the other: an image without package lists cannot install, and a stale list names files that are gone.
    for arguments in [vec!["update"], [vec!["install", "-y", "--no-install-recommends"], packages].concat()] {
        let mut apt = Command::new("apt-get");
        apt.args(&arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if !apt.status().is_ok_and(|status| status.success()) {
            return Err(format!("{wanted}, and `apt-get {}` failed", arguments.join(" ")));
        }
    }
    match tools.iter().find(|tool| !(tool.present)()) {
        None => Ok(()),
        Some(tool) => Err(format!("{}, even after {names} was installed", self::wanted(tool))),
    }
}

fn wanted(tool: &Tool) -> String {
    format!("{} is missing: it {}", tool.name, tool.purpose)
}

/// Debian's packages of servers make a cluster and start it. The tests bring their own, so that neither is wanted: while this
/// lives, services are not started (`policy-rc.d`) and clusters not made.
struct NothingStarts {
    written: Vec<&'static str>,
}

impl NothingStarts {
    const FILES: [(&str, &str); 2] = [
        ("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n"),
        ("/etc/postgresql-common/createcluster.d/semel-test.conf", "create_main_cluster = false\n"),
    ];

    /// What is there already is the machine's own, and stays. What cannot be written is done without: it is a courtesy.
    fn while_installing() -> Self {
        let mut written = Vec::new();
        for (path, text) in Self::FILES.into_iter().filter(|(path, _)| !Path::new(path).exists()) {
            let _made = Path::new(path).parent().map(fs::create_dir_all);
            let executable = || succeeds(Command::new("chmod").arg("755").arg(path));
            if fs::write(path, text).is_ok() && executable() {
                written.push(path);
            }
        }
        Self { written }
    }
}

impl Drop for NothingStarts {
    fn drop(&mut self) {
        for path in &self.written {
            let _gone = fs::remove_file(path);
        }
    }
}

/// Whether this machine is ours to install things on.
pub(crate) fn may_install() -> bool {
    is_root()
        && Path::new("/etc/debian_version").exists()
        && succeeds(Command::new("apt-get").arg("--version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_present_is_not_installed() {
        let tool = Tool {
            name: "a tool",
            purpose: "is there already",
            packages: &["no-such-package"],
            present: || true,
        };
        assert_eq!(provide(&[&tool]), Ok(()));
    }
}
