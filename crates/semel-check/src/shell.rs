//! Commands of the user, run by the shell.

use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// A text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Runs a command to its end, and returns what it printed. A reference has letters, digits and hyphens alone, so that it needs no quoting.
pub(crate) async fn output(command: &str, reference: &str, limit: Duration) -> Result<String, String> {
    let command = command.replace("{reference}", reference);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&command).stdin(Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(limit, shell.output()).await;
    let done = done.map_err(|_| format!("`{command}` takes longer than {} s", limit.as_secs()))?;
    let done = done.map_err(|error| format!("`{command}` cannot be run ({error})"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let said = said.trim().lines().last().unwrap_or_default().to_owned();
        return Err(format!("`{command}` failed with {} {said}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Starts a command and waits until it ends, or `limit` is over: then it is left to run, for it may be the server itself.
pub(crate) async fn start(command: &str, limit: Duration) -> Result<(), String> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().map_err(|error| format!("`{command}` cannot be run ({error})"))?;
    match tokio::time::timeout(limit, child.wait()).await {
        Ok(Ok(status)) if !status.success() => Err(format!("`{command}` failed with {status}")),
        _ => Ok(()),
    }
}
