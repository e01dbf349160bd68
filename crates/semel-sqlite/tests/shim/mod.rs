//! Libraries that are preloaded into a process of a test (`LD_PRELOAD`), and see or change what it asks the kernel for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the shim of this name, which is beside this file, into `directory`.
pub(crate) fn compile(name: &str, directory: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../semel-sqlite/tests/shim");
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
