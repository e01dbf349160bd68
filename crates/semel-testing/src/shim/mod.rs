//! Libraries that are preloaded into a process of a test (`LD_PRELOAD`), and see or change what it asks the kernel for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the shim of this name, which is beside this file, into `directory`.
pub fn compile(name: &str, directory: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/shim");
    let (source, shim) = (here.join(format!("{name}.c")), directory.join(format!("{name}.so")));
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-pthread", "-o"])
        .args([&shim, &source])
        .args(["-ldl"])
        .status()
        .expect("a C compiler: the bundled SQLite needs one too");
    assert!(compiled.success());
    shim
}

/// Runs a test of this program once more, in a process under the shim of this name, which finds in `variable` the name of a file that it
/// has to itself.
pub fn run_again(test: &str, shim: &str, variable: &str) {
    let place = tempfile::tempdir().expect("a directory");
    let library = compile(shim, place.path());
    let mut command = Command::new(std::env::current_exe().expect("this very test"));
    command.args([test, "--exact", "--nocapture"]);
    command.env("LD_PRELOAD", library).env(variable, place.path().join("of-the-shim"));
    let output = command.output().expect("it can be started");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    assert!(String::from_utf8_lossy(&said).contains("1 passed"), "the test of that name has to run");
}
