//! The gateway against nginx, and its protection against its own passing on.
//!
//! nginx is both the service (it returns a fixed answer) and the other proxy; wrk makes the load; all of it is on one machine. Every
//! round measures each of them once, one after the other.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod load;
mod lone;
mod processes;

use clap::Parser;
use load::{Kind, Load};
use processes::Processes;
use semel_benches::{Bar, Comparison, median, progress, report};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Parser)]
#[command(about = "Requests through the gateway, against nginx and against itself")]
struct Arguments {
    /// The binary `semel`. Without it: the one beside this program.
    #[arg(long)]
    semel: Option<PathBuf>,
    /// Rounds; each measures everything once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Clients' connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How long each is measured in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The directory of the database files; must be on a real disk.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let files = tempfile::tempdir_in(std::fs::canonicalize(&arguments.directory)?)?;
    let semel = match arguments.semel {
        Some(semel) => semel,
        None => std::env::current_exe()?.with_file_name("semel"),
    };
    let processes = Processes::start(&semel, files.path())?;
    let span = Duration::from_secs_f64(arguments.seconds);
    let load = Load::new(files.path(), arguments.connections, span)?;

    lone::first_requests(processes.gateway, load::old_keys())?;
    let (mut passing, mut protected, mut replayed) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("round {round} of {} (the first is a warm-up)", arguments.rounds));
        let nginx = load.run(processes.nginx, Kind::WithoutKey)?;
        let passed = load.run(processes.gateway, Kind::WithoutKey)?;
        let once = load.run(processes.gateway, Kind::NewKeys)?;
        let again = load.run(processes.gateway, Kind::OldKeys)?;
        if round > 0 {
            passing.push((passed, nginx));
            protected.push((once, passed));
            replayed.push((again, passed));
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut lone = Vec::new();
    for round in 0..=arguments.rounds {
        progress(&format!("one caller, round {round} of {}", arguments.rounds));
        let passed = median(&lone::requests(processes.gateway, false, span / 3)?);
        let once = median(&lone::requests(processes.gateway, true, span / 3)?);
        let file = files.path().join(format!("lone-{round}.db"));
        let commits = median(&runtime.block_on(lone::commits(&file, span / 3))?);
        if round > 0 {
            lone.push((once - passed, commits + 300.0));
        }
    }
    progress("");
    let comparisons = [
        Comparison::of("passed on, by nginx proxy_pass", "req/s", Bar::AtLeast(0.5), &passing),
        Comparison::of("protected, by passed on", "req/s", Bar::AtLeast(0.5), &protected),
        Comparison::of("replayed, by passed on", "req/s", Bar::AtLeast(0.85), &replayed),
        Comparison::of("added to a lone one, by two commits + 300", "us", Bar::AtMost(1.0), &lone),
    ];
    report(&comparisons, Path::new("target/bench/gateway.json"))?;
    Ok(())
}
