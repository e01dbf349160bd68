//! What each process of the demo does: a provider, a service and a gateway, which know of each other by address alone.

mod gateway;
mod provider;
pub(super) mod service;

use super::DemoError;
use clap::Subcommand;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;

pub(super) use gateway::ADMIN_TOKEN;
pub use gateway::GatewayArguments;
pub use provider::ProviderArguments;
pub use service::ServiceArguments;

/// One process of the demo. Works in the demo's directory, says in one line where it listens, and ends when its standard input
/// does: it never outlives the demo.
#[derive(Subcommand, Clone)]
pub enum Part {
    /// Charges what it is sent, and keeps the ledger.
    Provider(ProviderArguments),
    /// Takes payments, and asks the provider to charge them.
    Service(ServiceArguments),
    /// In front of the service.
    Gateway(GatewayArguments),
}

impl Part {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Provider(_) => "provider",
            Self::Service(_) => "service",
            Self::Gateway(_) => "gateway",
        }
    }

    /// The command line that asks for this part.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut line = vec![self.name().to_owned()];
        match self {
            Self::Provider(arguments) => arguments.append_to(&mut line),
            Self::Service(arguments) => arguments.append_to(&mut line),
            Self::Gateway(arguments) => arguments.append_to(&mut line),
        }
        line
    }

    /// The same part, at these addresses and no others.
    pub(super) fn at(self, addresses: &[SocketAddr]) -> Self {
        match (self, addresses) {
            (Self::Provider(_), [listen, ..]) => Self::Provider(ProviderArguments { listen: *listen }),
            (Self::Service(arguments), [listen, ..]) => {
                Self::Service(ServiceArguments { listen: *listen, ..arguments })
            }
            (Self::Gateway(arguments), [listen, admin_listen, ..]) => Self::Gateway(GatewayArguments {
                listen: *listen,
                or_another: false,
                admin_listen: *admin_listen,
                ..arguments
            }),
            (part, _) => part,
        }
    }
}

/// Runs one part, to its end.
///
/// # Errors
/// Why it could not run.
pub fn run(part: &Part) -> Result<ExitCode, DemoError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match part {
            Part::Provider(arguments) => provider::serve(arguments).await,
            Part::Service(arguments) => service::serve(arguments).await,
            Part::Gateway(arguments) => gateway::serve(arguments).await,
        }
    });
    runtime.shutdown_background();
    done.map(|()| ExitCode::SUCCESS)
}

/// Tells the demo where this part listens.
fn tell(addresses: &[SocketAddr]) -> std::io::Result<()> {
    let line = addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" ");
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
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
