//! dynoxide, the emulator of DynamoDB that tests run on: built from its crate, into a directory of its own below cargo's target directory.

use crate::install::may_install;
use crate::step::Outcome;
use semel_testing::servers::{DYNOXIDE, dynoxide};
use std::process::Command;

/// The version that the tests were written with.
const VERSION: &str = "3.2.0";

/// Makes sure that there is one. It cannot be a dependency: its SQLite and ours cannot be linked into one program.
pub(crate) fn provide() -> Outcome {
    if dynoxide().is_some() {
        return Ok(());
    }
    let wanted = "dynoxide is missing: the DynamoDB store is tested on it";
    let tools = semel_testing::servers::tools().ok_or("this program does not know where it is")?;
    let (place, building) = (tools.join("dynoxide"), tools.join("dynoxide-build"));
    if !may_install() {
        return Err(format!(
            "{wanted}. Run `cargo install dynoxide-rs --version {VERSION} --root {}`, or name it in {DYNOXIDE}; as root on Debian it would be \
             installed for you",
            place.display()
        ));
    }
    println!("    {wanted}. Building dynoxide-rs {VERSION} into {}.", place.display());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["install", "--quiet", "dynoxide-rs", "--version", VERSION, "--locked"]);
    // The server alone, and built in the half of the time that its own release profile takes.
    cargo.args(["--no-default-features", "--features", "native-sqlite,http-server,cli"]);
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    cargo.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16").env_remove("CARGO_TARGET_DIR");
    cargo.arg("--root").arg(&place).arg("--target-dir").arg(&building);
    if !cargo.status().is_ok_and(|status| status.success()) {
        return Err(format!("{wanted}, and `cargo install dynoxide-rs` failed"));
    }
    // Half a gigabyte that nobody needs any more.
    let _gone = std::fs::remove_dir_all(&building);
    if dynoxide().is_some() { Ok(()) } else { Err(format!("{wanted}, even after it was built")) }
}
