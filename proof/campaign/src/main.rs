//! `semel-campaign`: real processes, real stores and real faults, held against the provider's ledger.

mod check;
mod client;
mod faults;
mod linear;
mod log;
mod plan;
mod processes;
mod proxy;
mod report;
mod run;
mod shop;

use clap::{Parser, Subcommand};
use processes::{Outcome, StoreKind};
use run::Campaign;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Runs gateways, services, a worker and a provider, does everything to them that a bad night does, and judges what clients were
/// told by what the provider's ledger says.
#[derive(Parser)]
// What is said later counts: `cargo xtask prove` says what is usual first.
#[command(args_conflicts_with_subcommands = true, args_override_self = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// The stores; both, one after the other, if none is named
    #[arg(long, value_enum)]
    store: Vec<StoreKind>,
    /// Decides who asks for what and what goes wrong; the same seed makes the same plan
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many operations, each of 1 to 8 requests
    #[arg(long, default_value_t = 2_000)]
    operations: u32,
    /// Keep the directory with the processes' logs and stores
    #[arg(long)]
    keep: bool,
}

#[derive(Subcommand)]
enum Command {
    /// The service behind the gateways (started by the campaign itself)
    #[command(hide = true)]
    Shop {
        #[arg(long)]
        listen: SocketAddr,
        #[arg(long)]
        provider: SocketAddr,
    },
}

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let arguments = Arguments::parse();
    if let Some(Command::Shop { listen, provider }) = arguments.command {
        shop::serve(listen, provider).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let all = [StoreKind::Sqlite, StoreKind::Postgres];
    let stores = if arguments.store.is_empty() { &all[..] } else { &arguments.store };
    let mut good = true;
    for &store in stores {
        let campaign = Campaign { store, seed: arguments.seed, operations: arguments.operations };
        let mut directory = tempfile::Builder::new().prefix("semel-campaign-").tempdir()?;
        directory.disable_cleanup(arguments.keep);
        report::beginning(store, campaign.seed, directory.path());
        let result = campaign.run(directory.path()).await?;
        let was_good = report::result(&campaign, &result);
        // What is needed to find out why.
        directory.disable_cleanup(arguments.keep || !was_good);
        good &= was_good;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
