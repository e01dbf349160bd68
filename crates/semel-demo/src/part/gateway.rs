//! The gateway, from a configuration file that can be looked at.

use super::{end_of_input, tell};
use crate::DemoError;
use clap::Args;
use semel_gateway::{Config, GatewayProcess, StartError};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;

/// Where the gateway is.
#[derive(Args, Clone)]
pub struct GatewayArguments {
    #[arg(long)]
    pub(crate) upstream: SocketAddr,
    #[arg(long)]
    pub(crate) listen: SocketAddr,
    /// Take another port if this one is taken.
    #[arg(long)]
    pub(crate) or_another: bool,
    #[arg(long)]
    pub(crate) admin_listen: SocketAddr,
    /// Say of the service what is not true.
    #[arg(long)]
    pub(crate) misconfigured: bool,
}

/// In the demo's directory.
const CONFIG: &str = "semel.toml";

/// For everyone on this machine to read: it opens the demo alone, and on loopback.
pub(crate) const ADMIN_TOKEN: &str = "demo-token";

impl GatewayArguments {
    pub(super) fn append_to(&self, line: &mut Vec<String>) {
        line.extend(["--upstream".into(), self.upstream.to_string()]);
        line.extend(["--listen".into(), self.listen.to_string()]);
        line.extend(["--admin-listen".into(), self.admin_listen.to_string()]);
        line.extend(self.or_another.then(|| "--or-another".to_owned()));
        line.extend(self.misconfigured.then(|| "--misconfigured".to_owned()));
    }

    /// The wanted address; then the ports after it, for they are easy to read; then any.
    fn candidates(&self) -> Vec<SocketAddr> {
        const NEXT: u16 = 10;
        let mut candidates = vec![self.listen];
        if self.or_another {
            let ports = (1..=NEXT).filter_map(|next| self.listen.port().checked_add(next)).chain([0]);
            candidates.extend(ports.map(|port| SocketAddr::new(self.listen.ip(), port)));
        }
        candidates
    }

    fn config(&self, listen: SocketAddr, admin_listen: SocketAddr) -> String {
        let Self { upstream, misconfigured, .. } = self;
        // A 504 of this service means that the charge may have been made. Who calls that retryable is charged twice.
        let outcome = if *misconfigured { "\n[route.outcome]\n504 = \"retryable\"\n" } else { "" };
        format!(
            r#"# The demo's gateway.
upstream = "http://{upstream}"
listen   = "{listen}"
store    = "sqlite:semel.db"

[admin]
listen = "{admin_listen}"
token  = "{ADMIN_TOKEN}"

[scope]
tenant = ["header:x-account-id"]

[[route]]
operation = "create_payment"
match     = "POST /payments"
key       = "required"
lease     = "30s"
timeout   = "25s"
{outcome}"#
        )
    }
}

/// What is under way when the demo ends may take this long.
const FAREWELL: Duration = Duration::from_secs(3);

pub(super) async fn serve(arguments: &GatewayArguments) -> Result<(), DemoError> {
    let running = start(arguments).await?;
    let addresses = [running.address(), running.admin_address()];
    // The file is what is in force, ports and all.
    std::fs::write(CONFIG, arguments.config(addresses[0], addresses[1]))?;
    tell(&addresses)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let end = async {
        end_of_input().await;
        drop(stop);
        tokio::time::sleep(FAREWELL).await;
    };
    tokio::select! {
        _stopped = running.serve(async { drop(stopped.await) }, std::future::pending()) => {}
        () = end => {}
    }
    Ok(())
}

async fn start(arguments: &GatewayArguments) -> Result<GatewayProcess, DemoError> {
    let mut first_taken = None;
    for listen in arguments.candidates() {
        let config = arguments.config(listen, arguments.admin_listen);
        let config = Config::from_toml(&config, Path::new(CONFIG))?;
        match GatewayProcess::start(config).await {
            Err(StartError::Listen { address, error })
                if address == listen && error.kind() == ErrorKind::AddrInUse =>
            {
                first_taken.get_or_insert((address, error));
            }
            Err(StartError::Listen { address, error }) => return Err(DemoError::Listen(address, error)),
            started => return Ok(started?),
        }
    }
    Err(first_taken.map_or(DemoError::EndedAtStart, |(address, error)| DemoError::Listen(address, error)))
}
