//! The parts of the demo as processes of their own. Only a process can be killed in the middle of something.

use super::DemoError;
use super::part::Part;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A part that runs, or can be started again.
pub(super) struct Process {
    part: Part,
    /// Where it listens; the gateway's admin API comes second.
    addresses: Vec<SocketAddr>,
    child: Child,
}

/// How long a part may take to come up, and to end when asked to.
const PATIENCE: Duration = Duration::from_secs(10);

impl Process {
    pub(super) async fn start(part: Part, directory: &Path) -> Result<Self, DemoError> {
        let (child, addresses) = spawn(&part, directory).await?;
        // Started again, it is to be found at the same addresses.
        Ok(Self { part: part.at(&addresses), addresses, child })
    }

    /// Its first address.
    pub(super) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Its last address.
    pub(super) fn admin_address(&self) -> SocketAddr {
        self.addresses[self.addresses.len() - 1]
    }

    pub(super) fn name(&self) -> &'static str {
        self.part.name()
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills the process with SIGKILL: no farewell, no clearing up.
    pub(super) async fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill().await
    }

    pub(super) fn is_running(&mut self) -> std::io::Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// Starts the process again, on the same files and addresses.
    pub(super) async fn restart(&mut self, directory: &Path) -> Result<(), DemoError> {
        self.child = spawn(&self.part, directory).await?.0;
        Ok(())
    }

    /// Waits until the process ends without having been asked to.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        // Not `wait`: that closes the child's standard input first, which tells it to end.
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Asks the process to end, and kills it if it does not.
    pub(super) async fn stop(&mut self) {
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _gone = self.child.kill().await;
        }
    }
}

async fn spawn(part: &Part, directory: &Path) -> Result<(Child, Vec<SocketAddr>), DemoError> {
    let name = part.name();
    let failed = |error| DemoError::Start(name, error);
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("demo-part").args(part.arguments()).current_dir(directory);
    // Its standard input is its lifeline, its first line of output says where it listens.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    // Ctrl-C is for the demo, which then ends its parts in good order.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let output = child.stdout.take().ok_or(DemoError::NotUp(name))?;
    let mut line = String::new();
    let told = timeout(PATIENCE, BufReader::new(output).read_line(&mut line)).await;
    let addresses: Result<Vec<SocketAddr>, _> = line.split_whitespace().map(str::parse).collect();
    match (told, addresses) {
        (Ok(Ok(_)), Ok(addresses)) if !addresses.is_empty() => Ok((child, addresses)),
        // Its output ended without an address: so does the process, and it has said why.
        (Ok(_), _) => Err(DemoError::EndedAtStart),
        (Err(_), _) => Err(DemoError::NotUp(name)),
    }
}
