//! `semel demo`: a gateway, a payment service and a provider on this machine, and every case that a request can meet.
//!
//! - `part/`: what each of the three processes does;
//! - `process.rs`, `reserved_port.rs`, `environment.rs`: one of them, its port, and all of them, so that they can really be killed;
//! - `exchange.rs`, `client.rs`, `ledger.rs`: one request, one connection; what the provider's ledger says;
//! - `walk.rs`: what is done in each case;
//! - `cases.rs`: what each case shows, and whether it came out right: pure functions of what was seen;
//! - `report.rs`, `suggestions.rs`: what is printed.
//!
//! The provider is a crate of its own, `provider/`: the fault campaign and the example use it too.

mod cases;
mod client;
mod environment;
mod exchange;
mod ledger;
mod part;
mod process;
mod report;
mod reserved_port;
mod suggestions;
mod walk;

pub use part::{GatewayArguments, Part, ProviderArguments, ServiceArguments, run as run_part};

use clap::Args;
use environment::{Environment, Wanted};
use report::Report;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

/// Run every case on this machine: retried, raced, cut off, killed.
///
/// Starts three processes on loopback, with files in a temporary directory: a
/// gateway, a payment service behind it, and a provider that misbehaves. Sends
/// real requests and shows for each case what was sent, what came back and how
/// many charges the provider's ledger has. Then it keeps serving until Ctrl-C,
/// with commands to paste. Nothing is left behind.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:
  semel demo
  semel demo --once && echo 'all cases passed'
  semel demo --listen 127.0.0.1:0       any free port

Exit status: 0 if every case passed, 1 if one failed or the demo could not run.
Colours: on a terminal only, and not if NO_COLOR is set."
)]
pub struct Arguments {
    /// Exit after the last case.
    #[arg(long)]
    once: bool,

    /// Address of the gateway.
    ///
    /// Default: 127.0.0.1:8080, or another port if that is taken.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Misconfigure the gateway, so that one case fails: shows that a case can fail.
    #[arg(long, hide = true)]
    misconfigured: bool,
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// After the walk, how long a process that was killed stays away.
const ABSENCE: Duration = Duration::from_secs(2);

/// Why the demo could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// No temporary directory could be made.
    #[error("cannot create a temporary directory for the demo's files (set TMPDIR to choose where)")]
    Directory(#[source] std::io::Error),
    /// The gateway cannot listen there.
    #[error("cannot listen on {0} ({1}): choose another address with --listen, such as --listen 127.0.0.1:0")]
    Listen(SocketAddr, std::io::Error),
    /// A process could not be started.
    #[error("cannot start the {0}")]
    Start(&'static str, #[source] std::io::Error),
    /// A process does not come up.
    #[error("the {0} did not start in time: is the machine very busy? Try again")]
    NotUp(&'static str),
    /// A process has ended at its start. It has said why on the standard error that it shares with us.
    #[error("a process of the demo exited at start-up")]
    EndedAtStart,
    /// The provider could not be started.
    #[error("cannot start the provider")]
    Provider(#[from] payment_provider::OpenError),
    /// The provider's ledger failed.
    #[error("the provider failed")]
    Ledger(#[from] payment_provider::LedgerFailed),
    /// The gateway's configuration is wrong.
    #[error("invalid gateway configuration")]
    Config(#[from] semel_gateway::config::ConfigErrors),
    /// The gateway could not be started.
    #[error("cannot start the gateway")]
    Gateway(#[from] semel_gateway::StartError),
    /// The provider does not do as it is told.
    #[error("the provider cannot be controlled: {0}")]
    Unruly(String),
    /// What holds the demo together failed.
    #[error("system error")]
    Machinery(#[from] std::io::Error),
}

/// Runs the demo, until the walk is over or `interrupted` returns. `interrupted` is called again after it was dropped.
///
/// # Errors
/// Why the demo could not run.
pub async fn run(arguments: &Arguments, interrupted: impl AsyncFnMut()) -> Result<ExitCode, DemoError> {
    match demonstrate(arguments, interrupted).await {
        Err(DemoError::EndedAtStart) => Ok(ExitCode::FAILURE),
        // Whoever reads along has had enough (`semel demo | head`): no reason to complain.
        Err(DemoError::Machinery(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::FAILURE)
        }
        done => done,
    }
}

async fn demonstrate(
    arguments: &Arguments,
    mut interrupted: impl AsyncFnMut(),
) -> Result<ExitCode, DemoError> {
    let mut report = Report::new(anstream::stdout());
    let wanted = Wanted {
        listen: arguments.listen.unwrap_or(DEFAULT_LISTEN),
        or_another: arguments.listen.is_none(),
        misconfigured: arguments.misconfigured,
    };
    let mut stage = tokio::select! {
        set = Environment::set(wanted) => set?,
        () = interrupted() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    let address = stage.gateway.address();
    if arguments.listen.is_none() && address != DEFAULT_LISTEN {
        report.port_taken(DEFAULT_LISTEN.port(), address.port())?;
    }
    report.opening(&stage)?;

    let walked = tokio::select! {
        walked = walk::all(&mut stage, &mut report) => walked?,
        () = interrupted() => {
            stage.strike().await;
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    report.summary(&walked)?;
    if !arguments.once {
        let unruly = |error: client::ClientError| DemoError::Unruly(error.to_string());
        stage.ledger().keep_waiting_for(suggestions::STALL).await.map_err(unruly)?;
        suggestions::print(&mut report, &stage, &walked)?;
        loop {
            let (name, pid) = tokio::select! {
                () = interrupted() => break,
                revived = stage.revive() => revived?,
            };
            report.revived(name, pid)?;
        }
    }
    stage.strike().await;
    if !arguments.once {
        report.farewell()?;
    }
    Ok(if walked.all_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// As shells have it for a process that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
