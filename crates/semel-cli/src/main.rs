//! `semel`: the idempotency layer of a write API, as one binary.

mod admin;
mod audit;
mod check;
mod check_config;
mod clock;
mod completions;
mod demo;
mod doctor;
mod gateway;
mod health;
mod logs;
mod man;
mod migrate;
mod operations;
mod outbox;
mod output;
mod rekey;
mod reload;
mod shutdown;
mod sighup;
mod worker;

use clap::{Parser, Subcommand};
use semel_gateway::escape;
use semel_http::with_causes;
use std::error::Error;
use std::process::ExitCode;

// Requests are many small allocations on many threads, and what one thread allocates another frees: the system's allocator spends a
// tenth of the gateway's time on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Retry anything; it happens once.
///
/// Semel is the idempotency layer of a write API: one execution per
/// Idempotency-Key, the same answer for every retry, and a clear "unknown" when
/// the outcome cannot be known.
#[derive(Parser)]
#[command(name = "semel", version, verbatim_doc_comment, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  semel gateway --upstream http://localhost:3000
                                        protect the service at this URL
  semel demo                            watch every case, then try it with curl
  semel demo --once                     as a check: exit status 0 if all pass
  semel demo --listen 127.0.0.1:9000    at another address
  semel check http://localhost:3000 --send 'POST /payments' --dry-run
                                        find out whether an API is idempotent
  semel worker --config semel.toml      run background work in its own process
  semel check-config semel.toml         check a configuration
  semel doctor --config semel.toml      what is wrong or risky with the store
  semel reload                          put a changed one in force, without losing a request
  semel clock                           whether the store's clock is trusted
  semel operations list --state unknown outcomes that are unknown
  semel audit                           who did what as an operator
  semel outbox list --dead-letter       events that their receiver refused
  semel migrate --store postgres://owner@localhost/payments
                                        create or migrate the tables
  semel rekey --config semel.toml       seal stored records with the newest key

`semel help COMMAND` explains a command and its exit status.";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Gateway(gateway::Arguments),
    Worker(worker::Arguments),
    Check(Box<check::Arguments>),
    CheckConfig(check_config::Arguments),
    Doctor(doctor::Arguments),
    Reload(reload::Arguments),
    Clock(clock::Arguments),
    Health(health::Arguments),
    Operations(operations::Arguments),
    Outbox(outbox::Arguments),
    Audit(audit::Arguments),
    Migrate(migrate::Arguments),
    Rekey(rekey::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
    /// A process of the demo.
    #[command(hide = true, subcommand)]
    DemoPart(demo::Part),
}

fn main() -> ExitCode {
    let done: Result<ExitCode, Box<dyn Error>> = match Cli::parse().command {
        Command::Demo(arguments) => demo::run(&arguments).map_err(Into::into),
        Command::Gateway(arguments) => gateway::run(arguments).map_err(Into::into),
        Command::Worker(arguments) => worker::run(&arguments).map_err(Into::into),
        Command::Check(arguments) => return check::run(&arguments),
        Command::CheckConfig(arguments) => check_config::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Reload(arguments) => return reload::run(&arguments),
        Command::Clock(arguments) => return clock::run(&arguments),
        Command::Health(arguments) => return health::run(&arguments),
        Command::Operations(arguments) => return operations::run(&arguments),
        Command::Outbox(arguments) => return outbox::run(&arguments),
        Command::Audit(arguments) => return audit::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments).map_err(Into::into),
        Command::Rekey(arguments) => rekey::run(&arguments).map_err(Into::into),
        Command::Completions(arguments) => completions::run(&arguments).map_err(Into::into),
        Command::Man(arguments) => man::run(&arguments).map_err(Into::into),
        Command::DemoPart(part) => demo::run_part(&part).map_err(Into::into),
    };
    done.unwrap_or_else(|error| {
        anstream::eprintln!("semel: {}", with_causes(&*error));
        ExitCode::FAILURE
    })
}
