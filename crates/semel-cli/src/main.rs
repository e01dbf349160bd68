//! `semel`: the idempotency layer of a write API, as one binary.

mod admin;
mod check_config;
mod clock;
mod completions;
mod demo;
mod gateway;
mod hangups;
mod harmless;
mod health;
mod interrupts;
mod logs;
mod man;
mod migrate;
mod operations;
mod outbox;
mod output;
mod rekey;
mod reload;
mod worker;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

// Requests are many small allocations on many threads, and what one thread allocates another frees: the system's allocator spends a
// tenth of the gateway's time on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Retry anything; it happens once.
///
/// Semel is the idempotency layer of a write API: for each Idempotency-Key one
/// execution, one answer for all its retries, and a plain "unknown" where nobody
/// can know what was done.
#[derive(Parser)]
#[command(name = "semel", version, verbatim_doc_comment, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  semel gateway --upstream http://localhost:3000
                                        protect the service that listens there
  semel demo                            see every case, then try it with curl
  semel demo --once                     as a check: status 0 if all came out right
  semel demo --listen 127.0.0.1:9000    at another address
  semel worker --config semel.toml      settle doubt beside gateways, and forget on time
  semel check-config semel.toml         see what is wrong with a configuration
  semel reload                          put a changed one in force, and lose no request
  semel clock                           whether the store's clock is believed
  semel operations list --state unknown what waits for somebody to find out
  semel outbox list --dead-letter       events that their receiver refused
  semel migrate --store postgres://owner@localhost/payments
                                        make the tables, or update them
  semel rekey --config semel.toml       seal by the newest key what is stored

`semel help COMMAND` says what a command does, and what its exit status means.";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Gateway(gateway::Arguments),
    Worker(worker::Arguments),
    CheckConfig(check_config::Arguments),
    Reload(reload::Arguments),
    Clock(clock::Arguments),
    Health(health::Arguments),
    Operations(operations::Arguments),
    Outbox(outbox::Arguments),
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
        Command::CheckConfig(arguments) => check_config::run(&arguments),
        Command::Reload(arguments) => return reload::run(&arguments),
        Command::Clock(arguments) => return clock::run(&arguments),
        Command::Health(arguments) => return health::run(&arguments),
        Command::Operations(arguments) => return operations::run(&arguments),
        Command::Outbox(arguments) => return outbox::run(&arguments),
        Command::Migrate(arguments) => migrate::run(&arguments).map_err(Into::into),
        Command::Rekey(arguments) => rekey::run(&arguments).map_err(Into::into),
        Command::Completions(arguments) => completions::run(&arguments).map_err(Into::into),
        Command::Man(arguments) => man::run(&arguments).map_err(Into::into),
        Command::DemoPart(part) => demo::run_part(&part).map_err(Into::into),
    };
    done.unwrap_or_else(|error| {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            words = format!("{words}: {source}");
            cause = source.source();
        }
        anstream::eprintln!("semel: {words}");
        ExitCode::FAILURE
    })
}
