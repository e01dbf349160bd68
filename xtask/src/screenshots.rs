//! `cargo xtask screenshots`: the pictures of the console in the README and the book, taken in a real browser of operations that real requests made.

use crate::step::{self, Outcome, cargo, root};
use crate::{sdks, tools};
use std::process::Command;

pub(crate) fn run() -> Outcome {
    tools::watching()?;
    tools::npm()?;
    sdks::provide()?;
    step::run("build", &mut cargo(["build", "-p", "semel-cli"]))?;
    let target = step::target().ok_or("this program does not know where it is")?;
    let packages = semel_testing::servers::tools().ok_or("this program does not know where it is")?;
    let directory = target.join("screenshots");
    // What an earlier run left there is another store's.
    let _nothing_there = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let mut take = Command::new("node");
    take.arg(root().join("crates/semel-cli/tests/console/browser/screenshots.mjs"))
        .arg(packages.join("sdks/node"))
        .arg(target.join("debug/semel"))
        .arg(&directory)
        .arg(root().join("docs/operating/console"));
    step::run("screenshots", &mut take)
}
