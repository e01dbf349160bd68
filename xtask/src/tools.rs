//! What the steps need that cargo does not bring: found on the machine, or installed where that is ours to do.
//!
//! As root on Debian (a container, a CI machine) a missing package is installed by name. Anywhere else nothing is
//! changed and the message says what to do. A server that tests need one day is one more [`Tool`].

use crate::step::{self, Outcome};
use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Something outside of Rust.
struct Tool {
    name: &'static str,
    /// What it is for, so that nobody has to guess whether they need it.
    purpose: &'static str,
    packages: &'static [&'static str],
    present: fn() -> bool,
}

const C_COMPILER: Tool = Tool {
    name: "a C compiler (`cc`, or what `CC` names) with the C library's headers",
    purpose: "builds the bundled SQLite and the shim of the crash tests",
    packages: &["gcc", "libc6-dev"],
    present: compiles_c,
};

/// Checks everything that the steps need.
pub(crate) fn ensure() -> Outcome {
    component("rustfmt", "fmt")?;
    component("clippy", "clippy")?;
    // On Windows the build scripts find Microsoft's compiler by themselves, under no name that could be tried here.
    if cfg!(windows) {
        Ok(())
    } else {
        provide(&C_COMPILER)
    }
}

fn component(name: &str, subcommand: &str) -> Outcome {
    if succeeds(&mut step::cargo([subcommand, "--version"])) {
        return Ok(());
    }
    Err(format!(
        "{name} is missing from this toolchain; `rustup component add rustfmt clippy` installs it"
    ))
}

fn provide(tool: &Tool) -> Outcome {
    if (tool.present)() {
        return Ok(());
    }
    let packages = tool.packages.join(" ");
    let wanted = format!("{} is missing: it {}", tool.name, tool.purpose);
    if !may_install() {
        return Err(format!(
            "{wanted}. Install it (Debian, Ubuntu: `apt-get install {packages}`) and run this again; as root on \
             Debian it would be installed for you"
        ));
    }
    println!("    {wanted}. Installing {packages}.");
    // One after the other: an image without package lists cannot install, and a stale list names files that are gone.
    for arguments in [
        &["update"][..],
        &[&["install", "-y", "--no-install-recommends"], tool.packages].concat(),
    ] {
        let mut apt = Command::new("apt-get");
        apt.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        if !apt.status().is_ok_and(|status| status.success()) {
            return Err(format!("{wanted}, and `apt-get {}` failed", arguments.join(" ")));
        }
    }
    if (tool.present)() {
        Ok(())
    } else {
        Err(format!("{wanted}, even after {packages} was installed"))
    }
}

fn may_install() -> bool {
    let root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    root && Path::new("/etc/debian_version").exists() && succeeds(Command::new("apt-get").arg("--version"))
}

/// A compiler without headers is a common half-installation, and fails late and obscurely: so compile something. That
/// this program was linked proves little: Rust may use another linker, or have been built elsewhere.
fn compiles_c() -> bool {
    // As the build scripts do: `CC` may hold arguments, or a wrapper and the compiler.
    let compiler = env::var("CC").unwrap_or_default();
    let mut words = compiler.split_whitespace();
    let mut compiler = Command::new(words.next().unwrap_or("cc"));
    compiler.args(words).args(["-fsyntax-only", "-x", "c", "-"]);
    let started = compiler
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return false };
    // The pipe closes with the end of the statement; a compiler that did not read is told by its status.
    let _ = child
        .stdin
        .take()
        .map(|mut source| source.write_all(b"#include <stdio.h>\nint main(void) { return 0; }\n"));
    child.wait().is_ok_and(|status| status.success())
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_present_is_not_installed() {
        let tool = Tool {
            present: || true,
            packages: &["no-such-package"],
            ..C_COMPILER
        };
        assert_eq!(provide(&tool), Ok(()));
    }

    #[test]
    fn a_missing_component_is_told_with_its_cure() {
        let failure = component("a tool", "no-such-subcommand").unwrap_err();
        assert!(
            failure.contains("a tool is missing") && failure.contains("rustup component add"),
            "{failure}"
        );
    }
}
