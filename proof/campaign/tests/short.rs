//! A short campaign on each store, as part of the tests: every profile once, four rounds at a time. `cargo xtask prove campaign` runs longer ones.

use std::process::Command;

#[test]
fn nothing_is_done_twice_nothing_is_forgotten_and_nothing_is_left_in_doubt() {
    let status = Command::new(env!("CARGO_BIN_EXE_semel-campaign"))
        .args(["--operations", "3300", "--round", "300", "--at-once", "4"])
        .args(["--concurrent", "150", "--per-fault", "30"])
        .status()
        .expect("the campaign can be started");
    assert!(status.success(), "the report above says what was violated, and where the logs are");
}
