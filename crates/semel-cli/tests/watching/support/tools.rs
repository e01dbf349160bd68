//! Where the tools are that `cargo xtask` provides.

use std::path::PathBuf;

/// A program of the Python packages: `cargo xtask test` and `cargo xtask servers` put them beside what cargo builds.
pub(crate) fn python_tool(name: &str) -> PathBuf {
    let program = match std::env::var_os("SEMEL_TEST_PYTHON_TOOLS") {
        Some(place) => PathBuf::from(place).join("bin").join(name),
        None => {
            let this = std::env::current_exe().unwrap();
            // TARGET/debug/deps/watching-…
            this.ancestors().nth(3).unwrap().join("tools/watching/bin").join(name)
        }
    };
    assert!(program.is_file(), "{} is missing: `cargo xtask servers true` puts it there", program.display());
    program
}
