//! Failovers of three PostgreSQL servers under Patroni, beneath two gateways, with clients that retry.
//!
//! An operation is acknowledged when a client gets 201. It is lost if that answer is not replayed in the end, byte for byte. It was executed twice if the
//! service counted it twice. `cargo xtask prove failover` builds and runs this.
#![allow(clippy::print_stdout, reason = "a tool for the terminal: what it prints is what it is for")]

mod clients;
mod fault;
mod gateways;
mod group;
mod http;
mod ledger;

use clap::Parser;
use clients::{Clients, Verdict};
use fault::Fault;
use gateways::Gateways;
use group::Group;
use ledger::Ledger;
use semel_testing::servers::Directory;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Arguments {
    /// The binary `semel`
    #[arg(long)]
    semel: PathBuf,
    /// Faults of each kind
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Only these kinds
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Fault>,
    /// Clients at once
    #[arg(long, default_value_t = 16)]
    clients: usize,
    /// Acknowledged operations at least
    #[arg(long, default_value_t = 100_000)]
    operations: usize,
    /// Replicate asynchronously and accept it: the checker has to find losses
    #[arg(long)]
    asynchronous: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("failover: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How long the gateways took to serve again after the new primary took writes, and after the fault.
#[derive(Default)]
struct Times {
    after_primary: Vec<Duration>,
    after_fault: Vec<Duration>,
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let synchronous = !arguments.asynchronous;
    let kinds = match (&arguments.only[..], synchronous) {
        ([], true) => Fault::ALL.to_vec(),
        ([], false) => vec![Fault::Lag],
        (only, _) => only.to_vec(),
    };
    println!("starting etcd and three servers under Patroni");
    let mut group = Group::start(synchronous)?;
    let ledger = Ledger::default();
    let replication = match synchronous {
        true => "replication = \"synchronous\"",
        false => "dangerously_accept_asynchronous_replication = true",
    };
    let directory = Directory::new(&std::env::temp_dir(), "gateways")?;
    let gateways =
        Gateways::start(&arguments.semel, directory.path(), &group.url(), replication, ledger.serve()?)?;
    let clients = Clients::new(gateways.addresses.clone());
    let begun = Instant::now();
    let running = clients.start(arguments.clients);
    await_service(&clients, directory.path())?;
    let mut times: BTreeMap<Fault, Times> = BTreeMap::new();
    for round in 1..=arguments.rounds {
        for kind in &kinds {
            group.wait_until_whole(synchronous)?;
            let before = clients.acknowledged();
            sleep(Duration::from_secs(1));
            let (fault, (but, end)) = (Instant::now(), kind.begin(&mut group)?);
            while !group.commits(but) {
                sleep(Duration::from_millis(50));
            }
            let primary = Instant::now();
            while !clients.served_since(primary) {
                sleep(Duration::from_millis(10));
                if primary.elapsed() > Duration::from_secs(120) {
                    return Err(format!("nothing is served 2 minutes after {}", kind.name()));
                }
            }
            let (after_primary, after_fault) = (primary.elapsed(), fault.elapsed());
            println!(
                "round {round}: {}: served {} ms after a primary took writes, {} ms after the fault; {} acknowledged before",
                kind.name(),
                after_primary.as_millis(),
                after_fault.as_millis(),
                before
            );
            let kept = times.entry(*kind).or_default();
            kept.after_primary.push(after_primary);
            kept.after_fault.push(after_fault);
            end.act(&mut group)?;
        }
    }
    group.wait_until_whole(synchronous)?;
    while clients.acknowledged() < arguments.operations {
        sleep(Duration::from_millis(100));
    }
    clients.stop();
    running.into_iter().for_each(|client| drop(client.join()));
    let verdict = clients.verify();
    let twice = ledger.twice();
    report(&times, &verdict, twice, begun.elapsed(), synchronous);
    let holds = verdict.lost.is_empty() && twice == 0 && verdict.wrong.is_empty();
    // Where replication is asynchronous, a checker that finds nothing is broken.
    Ok(holds == synchronous)
}

fn await_service(clients: &Clients, directory: &std::path::Path) -> Result<(), String> {
    let begun = Instant::now();
    while clients.acknowledged() == 0 {
        if begun.elapsed() > Duration::from_secs(60) {
            let log = std::fs::read_to_string(directory.join("gateway-1.log")).unwrap_or_default();
            return Err(format!("the gateways do not serve: {log}"));
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn report(
    times: &BTreeMap<Fault, Times>,
    verdict: &Verdict,
    twice: usize,
    took: Duration,
    synchronous: bool,
) {
    println!(
        "\n| fault | times | served after a primary took writes, median and worst | after the fault, median and worst |\n|---|---|---|---|"
    );
    for (kind, Times { after_primary, after_fault }) in times {
        println!(
            "| {} | {} | {} | {} |",
            kind.name(),
            after_primary.len(),
            spread(after_primary),
            spread(after_fault)
        );
    }
    println!(
        "\n{} replication, {} s: {} operations acknowledged, {} lost, {twice} executed twice, {} without an outcome for their client, {} wrong answers",
        if synchronous { "synchronous" } else { "asynchronous" },
        took.as_secs(),
        verdict.acknowledged,
        verdict.lost.len(),
        verdict.open,
        verdict.wrong.len(),
    );
    for what in
        verdict.lost.iter().map(|key| format!("{key}: lost")).chain(verdict.wrong.iter().cloned()).take(10)
    {
        println!("  {what}");
    }
}

fn spread(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let worst = times.last().copied().unwrap_or_default();
    format!("{:.1} s, {:.1} s", median.as_secs_f64(), worst.as_secs_f64())
}
