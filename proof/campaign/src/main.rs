//! `semel-campaign`: real processes, real stores and real faults, held against the provider's ledger.

mod armed;
mod cache;
mod changes;
mod check;
mod client;
mod clock;
mod config;
mod damage;
mod disk;
mod fault;
mod fencing;
mod http2;
mod inside;
mod layered;
mod ledger;
mod linear;
mod log;
mod off;
mod operator;
mod outcome;
mod pairs;
mod plan;
mod process;
mod processes;
mod profile;
mod progress;
mod proxy;
mod rain;
mod report;
mod run;
mod scene;
mod server_clock;
mod shop;
mod started;
mod starts;
mod store;
mod tally;
mod webhooks;

use cache::CacheKind;
use clap::{Parser, Subcommand};
use disk::Disk;
use fault::Fault;
use outcome::Outcome;
use profile::Profile;
use progress::Progress;
use run::Round;
use scene::Scene;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use store::StoreKind;
use tally::Tally;
use tokio::task::JoinSet;

/// Runs gateways, services, a worker and a provider, injects faults into all of them, and judges what clients were
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
    /// Decides who asks for what and what goes wrong; the same seed makes the same plan. Every round has the next one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many operations for each store, each of 1 to 8 requests
    #[arg(long, default_value_t = 2_000)]
    operations: u32,
    /// How many of them make up a round, which has processes and a store of its own
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    round: u32,
    /// How many rounds run at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    at_once: u32,
    /// What every round goes by; otherwise they take turns, by the seed. Several may be named, which then take turns
    #[arg(long, value_enum)]
    profile: Vec<Profile>,
    /// What the machines of every round are like; otherwise they take turns, by the seed
    #[arg(long, value_enum)]
    scene: Option<Scene>,
    /// How many operations of a round are under way at once
    #[arg(long, default_value_t = 400)]
    concurrent: usize,
    /// One fault for so many operations, or fewer
    #[arg(long, default_value_t = 100)]
    per_fault: usize,
    /// Strike with this alone, wherever it is possible; several may be named
    #[arg(long, value_enum)]
    only: Vec<Fault>,
    /// Put a Redis in front of the gateways' store, and strike it too
    #[arg(long, value_enum)]
    redis: Option<CacheKind>,
    /// Another build of `semel`, which gateways are restarted with in turn
    #[arg(long)]
    other_build: Option<PathBuf>,
    /// Where the report goes, in Markdown; after every round, so that there is one of what was done so far
    #[arg(long)]
    report: Option<PathBuf>,
    /// Keep the directories with the processes' logs and stores
    #[arg(long)]
    keep: bool,
}

#[derive(Subcommand)]
enum Command {
    /// The service behind the gateways (started by the campaign itself)
    #[command(hide = true)]
    Shop(shop::Arguments),
    /// A service with Semel's layer (started by the campaign itself)
    #[command(hide = true)]
    Layered(layered::Arguments),
}

#[tokio::main]
async fn main() -> Outcome<ExitCode> {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::Shop(arguments)) => return shop::serve(arguments).await.map(|()| ExitCode::SUCCESS),
        Some(Command::Layered(arguments)) => {
            return layered::serve(arguments).await.map(|()| ExitCode::SUCCESS);
        }
        None => {}
    }
    tokio::select! {
        good = run(&arguments) => Ok(if good? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        // What was mounted and started goes with the futures.
        interrupted = told_to_end() => {
            interrupted?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Waits for whoever wants it to end.
async fn told_to_end() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

#[expect(clippy::print_stdout, reason = "a report is printed")]
async fn run(arguments: &Arguments) -> Outcome<bool> {
    let all = [StoreKind::Sqlite, StoreKind::Postgres];
    let stores = if arguments.store.is_empty() { &all[..] } else { &arguments.store };
    let small_disks = Disk::can_be_small(tempfile::tempdir()?.path());
    if !small_disks {
        println!("No disk will be full: this user may not mount a small one. As root it would be done.");
    }
    let mut good = true;
    let mut reports = String::new();
    for &store in stores {
        let tally = campaign(arguments, store, small_disks, &reports).await?;
        let report = report::markdown(&tally);
        println!("{report}");
        reports.push_str(&format!("{report}\n"));
        let why = report::faults_of(&tally);
        for why in &why {
            println!("does not count: {why}");
        }
        good &= why.is_empty();
    }
    Ok(good)
}

/// Round after round, each judged and dropped before the next begins in its place. `before`: the report of what came before.
async fn campaign(
    arguments: &Arguments,
    store: StoreKind,
    small_disks: bool,
    before: &str,
) -> Outcome<Tally> {
    let mut tally = Tally::new(store, arguments.seed);
    let progress = Arc::new(Progress::new(store.name().to_owned(), arguments.operations.into()));
    let rounds = arguments.operations.div_ceil(arguments.round);
    let mut waiting = (0..rounds).map(|number| arguments.one_round(store, number, small_disks));
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < arguments.at_once as usize {
            let Some(round) = waiting.next() else { break };
            under_way.spawn(play(round, arguments.keep, Arc::clone(&progress)));
        }
        let Some(played) = under_way.join_next().await else { return Ok(tally) };
        let (round, result) = played??;
        tally.add(&round, result);
        if let Some(file) = &arguments.report {
            std::fs::write(file, format!("{before}{}", report::markdown(&tally)))?;
        }
    }
}

impl Arguments {
    /// The round of this number.
    fn one_round(&self, store: StoreKind, number: u32, small_disks: bool) -> Round {
        let seed = self.seed + u64::from(number);
        let scene = match self.scene.unwrap_or_else(|| Scene::of(store, seed)) {
            Scene::SmallDisk if !small_disks => Scene::Plain,
            scene => scene,
        };
        let turn = usize::try_from(seed % self.profile.len().max(1) as u64).unwrap_or_default();
        Round {
            store,
            scene,
            profile: self.profile.get(turn).copied().unwrap_or_else(|| Profile::of(seed)),
            seed,
            operations: self.round.min(self.operations - number * self.round),
            concurrent: self.concurrent,
            per_fault: self.per_fault,
            only: self.only.clone(),
            redis: self.redis,
            other_build: self.other_build.clone(),
        }
    }
}

async fn play(round: Round, keep: bool, progress: Arc<Progress>) -> Outcome<(Round, run::Result)> {
    let mut directory = tempfile::Builder::new().prefix("semel-campaign-").tempdir()?;
    // Whatever ends it early: what is needed to find out why.
    directory.disable_cleanup(true);
    let result = round.run(directory.path(), &progress).await.map_err(|error| {
        let Round { profile, seed, .. } = &round;
        format!(
            "the round of seed {seed} ({profile}) came to no end: {error}; see {}",
            directory.path().display()
        )
    })?;
    progress.clear();
    report::round(&round, &result, directory.path());
    let violations = result.judged.violations.len();
    directory.disable_cleanup(keep || violations > 0);
    let faults: u32 = result.done.counts.values().sum();
    progress.add(faults.into(), violations as u64);
    Ok((round, result))
}
