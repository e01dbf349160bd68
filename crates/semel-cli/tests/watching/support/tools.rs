//! Where the tools are that `cargo xtask` provides.

use std::path::PathBuf;

/// A program of the Python packages.
pub(crate) fn python_tool(name: &str) -> PathBuf {
    let program = semel_testing::servers::python_tools().unwrap().join("bin").join(name);
    assert!(program.is_file(), "{} is missing: run `cargo xtask test semel-cli`", program.display());
    program
}
