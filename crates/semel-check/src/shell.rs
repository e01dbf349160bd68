//! Commands of the user, run by the shell.

use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Runs the command of a flag to its end, and returns what it printed. A reference has letters, digits and hyphens alone, so that it
/// needs no quoting. Errors name the flag, not the command, which may have a password in it.
pub(crate) async fn output(
    flag: &str,
    command: &str,
    reference: &str,
    limit: Duration,
) -> Result<String, String> {
    let command = command.replace("{reference}", reference);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&command).stdin(Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(limit, shell.output()).await;
    let done = done.map_err(|_| format!("{flag} takes longer than {} s", limit.as_secs()))?;
    let done = done.map_err(|error| format!("{flag} cannot be run ({error})"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let said = said.trim().lines().last().unwrap_or_default().to_owned();
        return Err(format!("{flag} failed with {} {said}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Starts the command of a flag and waits until it ends, or `limit` is over: then it is left to run, for it may be the server itself.
pub(crate) async fn start(flag: &str, command: &str, limit: Duration) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().map_err(|error| format!("{flag} cannot be run ({error})"))?;
    match tokio::time::timeout(limit, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("{flag} failed with {status}")),
        _ => Ok(()),
    }
}
