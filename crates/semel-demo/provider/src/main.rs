//! `payment-provider`: a payment provider that misbehaves on purpose. `--help` says how.

use clap::Parser;
use payment_provider::{Arguments, run};
use std::error::Error;
use std::io::IsTerminal as _;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "payment-provider", version)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { arguments } = Cli::parse();
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).init();
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes = std::iter::successors(error.source(), |cause| (*cause).source());
            let words = causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"));
            tracing::error!("{words}");
            ExitCode::FAILURE
        }
    }
}
