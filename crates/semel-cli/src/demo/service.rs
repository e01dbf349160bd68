//! The payment service as a process of its own. Only a process can be killed in the middle of something.

use super::DemoError;
use clap::Args;
use payments::{PaymentsOptions, PaymentsService};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The payment service of the demo. Ends when its standard input does, and so never outlives the demo.
#[derive(Args)]
pub(crate) struct ServiceArguments {
    #[arg(long)]
    listen: SocketAddr,
    /// Take another port if this one is taken.
    #[arg(long)]
    or_another: bool,
    #[arg(long)]
    database: String,
    #[arg(long)]
    lease_ms: u64,
}

/// How the service is started, the first time and again.
pub(super) struct Launch {
    pub(super) listen: SocketAddr,
    pub(super) or_another: bool,
    pub(super) database: PathBuf,
    pub(super) lease: Duration,
}

/// The running service.
pub(super) struct Service {
    launch: Launch,
    child: Child,
}

/// How long the service may take to come up, and to end when asked to.
const PATIENCE: Duration = Duration::from_secs(10);

impl Service {
    pub(super) async fn start(mut launch: Launch) -> Result<Self, DemoError> {
        let (child, address) = spawn(&launch).await?;
        // Started again, it is to be found at the same address.
        launch.listen = address;
        launch.or_another = false;
        Ok(Self { launch, child })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.launch.listen
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Kills the service with SIGKILL: no farewell, no clearing up.
    pub(super) async fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill().await
    }

    /// Starts the service again, on the same file and address.
    pub(super) async fn restart(&mut self) -> Result<(), DemoError> {
        self.child = spawn(&self.launch).await?.0;
        Ok(())
    }

    /// Waits until the service ends by itself, which it should not.
    pub(super) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        // Not `wait`: that closes the child's standard input first, which tells it to end.
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Asks the service to end, and kills it if it does not.
    pub(super) async fn stop(mut self) {
        if timeout(PATIENCE, self.child.wait()).await.is_err() {
            let _gone = self.child.kill().await;
        }
    }
}

async fn spawn(launch: &Launch) -> Result<(Child, SocketAddr), DemoError> {
    let mut command = Command::new(std::env::current_exe().map_err(DemoError::Start)?);
    command.arg("demo-service");
    command.arg("--listen").arg(launch.listen.to_string());
    command.arg("--database").arg(&launch.database);
    command.arg("--lease-ms").arg(launch.lease.as_millis().to_string());
    if launch.or_another {
        command.arg("--or-another");
    }
    // Its standard input is its lifeline, its first line of output says where it listens.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    // Ctrl-C is for the demo, which then ends the service in good order.
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn().map_err(DemoError::Start)?;
    let output = child.stdout.take().ok_or(DemoError::NotUp)?;
    let mut line = String::new();
    let told = timeout(PATIENCE, BufReader::new(output).read_line(&mut line)).await;
    match (told, line.trim().parse()) {
        (Ok(Ok(_)), Ok(address)) => Ok((child, address)),
        // Its output ended without an address: so does the process, and it has said why.
        (Ok(_), _) => Err(DemoError::EndedAtStart),
        (Err(_), _) => Err(DemoError::NotUp),
    }
}

/// The service's side: serves until the standard input ends.
pub(crate) fn serve(arguments: &ServiceArguments) -> Result<ExitCode, DemoError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let options = PaymentsOptions {
            lease: Duration::from_millis(arguments.lease_ms),
            // Below the lease, as it has to be, and no more than necessary.
            timeout: Duration::from_millis(arguments.lease_ms * 9 / 10),
            demo_delays: true,
            ..PaymentsOptions::default()
        };
        let listener = listen(arguments.listen, arguments.or_another).await?;
        let service = PaymentsService::open(&arguments.database, options).await?;
        {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", listener.local_addr()?)?;
            out.flush()?;
        }
        Ok(service.serve(listener, end_of_input()).await.map(|()| ExitCode::SUCCESS)?)
    })
}

/// The ports after the wanted one are tried first, for they are easy to read; then any.
async fn listen(wanted: SocketAddr, or_another: bool) -> Result<TcpListener, DemoError> {
    const NEXT: u16 = 10;
    let taken = match TcpListener::bind(wanted).await {
        Err(error) if or_another && error.kind() == ErrorKind::AddrInUse => error,
        bound => return bound.map_err(|error| DemoError::Listen(wanted, error)),
    };
    for port in (1..=NEXT).filter_map(|next| wanted.port().checked_add(next)).chain([0]) {
        if let Ok(listener) = TcpListener::bind((wanted.ip(), port)).await {
            return Ok(listener);
        }
    }
    Err(DemoError::Listen(wanted, taken))
}

async fn end_of_input() {
    let (ended, end) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while std::io::stdin().read(&mut rest).is_ok_and(|read| read > 0) {}
        let _ = ended.send(());
    });
    let _ = end.await;
}
