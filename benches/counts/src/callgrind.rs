//! Counts instructions: this very program runs one part under callgrind, once and twice as often.

use crate::parts::Part;
use std::process::{Child, Command, Stdio};

/// How many instructions one go at the part takes. Start-up, input and the first go's extras are the same in both runs, and cancel out.
pub(crate) fn instructions(part: &Part) -> Result<u64, String> {
    // Side by side: nothing that one does to the other's time changes a count.
    let (once, twice) = (start(part, part.times)?, start(part, 2 * part.times)?);
    let (once, twice) = (collected(part, once), collected(part, twice));
    Ok(twice?.saturating_sub(once?) / part.times)
}

fn start(part: &Part, times: u64) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    valgrind.args(["run", part.name, &times.to_string()]);
    // The environment lies on the stack, and where the stack begins decides how memory is aligned.
    valgrind.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    valgrind.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(|error| {
        format!(
            "valgrind could not be started: {error}; install it (Debian, Ubuntu: `apt-get install valgrind`)"
        )
    })
}

fn collected(part: &Part, running: Child) -> Result<u64, String> {
    let output = running.wait_with_output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{} under callgrind failed ({}): {told}", part.name, output.status));
    }
    // "==4711== Collected : 123456"
    let collected = told.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    collected
        .ok_or_else(|| format!("callgrind did not tell how many instructions {} took: {told}", part.name))
}
