//! `semel demo`: a payment service on this machine, and everything that can happen to a request.
//!
//! - `service.rs`: the payment service as a process of its own, so that it can really be killed;
//! - `client.rs`: one request, one connection;
//! - `walk.rs`: what is done in each case;
//! - `cases.rs`: what each case shows, and whether it came out right: pure functions of what was seen;
//! - `report.rs`, `invitation.rs`: what is printed.

mod cases;
mod client;
mod invitation;
mod report;
mod service;
mod walk;

pub(crate) use service::{ServiceArguments, serve};

use crate::interrupts::Interrupts;
use clap::Args;
use report::Report;
use service::{Launch, Service};
use std::io::IsTerminal as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

/// See every case on this machine: retried, raced, cut off, killed.
///
/// Starts a payment service: a process of its own on loopback, with a SQLite file
/// in a temporary directory. Sends it real requests, and shows for each case what
/// was sent, what came back and how many payments there are. Then it goes on
/// serving, with curl lines to paste, until Ctrl-C. The process and its files are
/// gone afterwards.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  semel demo
  semel demo --once && echo 'all as promised'
  semel demo --listen 127.0.0.1:0       any free port

Exit status: 0 if every case came out right, 1 if one did not or the demo could not run.
Colours: on a terminal only, and not if NO_COLOR is set."
)]
pub(crate) struct Arguments {
    /// End after the walk.
    #[arg(long)]
    once: bool,

    /// Where the payment service listens.
    ///
    /// Without it: 127.0.0.1:8080, or another port if that is taken.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Gives the service another lease than the walk reckons with: then the last case must go wrong, which shows that one can.
    #[arg(long, value_name = "SECONDS", hide = true)]
    wrong_lease: Option<u64>,
}

const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Short enough to wait for, long enough to start the service again while it lasts.
const LEASE: Duration = Duration::from_secs(3);

/// Why the demo could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DemoError {
    #[error("no temporary directory could be made for the demo's database (TMPDIR says where)")]
    Directory(#[source] std::io::Error),
    #[error("cannot listen on {0} ({1}): choose another address with --listen, such as --listen 127.0.0.1:0")]
    Listen(SocketAddr, std::io::Error),
    #[error("the payment service could not be started")]
    Start(#[source] std::io::Error),
    #[error("the payment service does not come up: is the machine very busy? Try again")]
    NotUp,
    /// It has said why on the standard error that it shares with us.
    #[error("the payment service has ended at its start")]
    EndedAtStart,
    #[error("the payment service failed")]
    Payments(#[from] payments::StartError),
    #[error("the payment service ended by itself ({0})")]
    Ended(std::process::ExitStatus),
    #[error("the demo's own machinery failed")]
    Machinery(#[from] std::io::Error),
}

/// Runs the demo.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, DemoError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(demonstrate(arguments));
    match done {
        Err(DemoError::EndedAtStart) => Ok(ExitCode::FAILURE),
        // Whoever reads along has had enough (`semel demo | head`): no reason to complain.
        Err(DemoError::Machinery(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::FAILURE)
        }
        done => done,
    }
}

async fn demonstrate(arguments: &Arguments) -> Result<ExitCode, DemoError> {
    let mut interrupts = Interrupts::listen()?;
    // Removed when it is dropped, and so is the service: however this ends.
    let directory = tempfile::Builder::new().prefix("semel-demo-").tempdir().map_err(DemoError::Directory)?;
    let launch = Launch {
        listen: arguments.listen.unwrap_or(DEFAULT_LISTEN),
        or_another: arguments.listen.is_none(),
        database: directory.path().join("payments.db"),
        lease: arguments.wrong_lease.map_or(LEASE, Duration::from_secs),
    };
    let database = launch.database.clone();
    let mut report = Report::new(anstream::stdout(), std::io::stdout().is_terminal());
    let mut service = Service::start(launch).await?;
    if arguments.listen.is_none() && service.address() != DEFAULT_LISTEN {
        report.port_taken(DEFAULT_LISTEN.port(), service.address().port())?;
    }
    report.opening(service.address(), service.pid(), &database, LEASE)?;

    let walked = tokio::select! {
        walked = walk::all(&mut service, &mut report, LEASE) => walked?,
        () = interrupts.come() => {
            service.stop().await;
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    report.summary(&walked)?;
    if !arguments.once {
        invitation::print(&mut report, service.address(), &database)?;
        tokio::select! {
            () = interrupts.come() => report.farewell()?,
            ended = service.ended() => return Err(DemoError::Ended(ended?)),
        }
    }
    service.stop().await;
    Ok(if walked.all_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// As shells have it for a process that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
