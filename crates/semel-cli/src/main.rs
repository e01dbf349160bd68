//! `semel`: the idempotency layer of a write API, as one binary.

mod demo;
mod gateway;
mod interrupts;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

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

`semel help demo` says what the demo does, and what it leaves behind (nothing).";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Gateway(gateway::Arguments),
    #[command(hide = true)]
    DemoService(demo::ServiceArguments),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Demo(arguments) => ended(demo::run(&arguments)),
        Command::DemoService(arguments) => ended(demo::serve(&arguments)),
        Command::Gateway(arguments) => ended(gateway::run(arguments)),
    }
}

fn ended<E: Error>(done: Result<ExitCode, E>) -> ExitCode {
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
