//! What changes while a store grows: speed and tail latency of new operations and replays through a gateway, the gateway's memory and
//! its start, the bytes on disk, and whether the reaper keeps up.
//!
//! One store grows from step to step; another one stays at the first step's size, and whatever can be is measured on both alternately.
//! At the first step both are of one size: what they differ by then is noise.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod kept;
mod postgres;
mod sqlite;
mod steady;

use clap::Parser;
use kept::{Failure, Kept, Pattern};
use semel_benches::load::{Answered, Kind, Load, stored_key};
use semel_benches::plot::growth;
use semel_benches::processes::{Gateway, Nginx};
use semel_benches::table::number;
use semel_benches::{Bar, Comparison, caller, median, progress, report};
use semel_testing::servers::{Cluster, Directory};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How many keys are stored, step by step.
const STEPS: [u64; 4] = [100_000, 1_000_000, 5_000_000, 20_000_000];

/// Records that are made at once.
const BATCH: u64 = 20_000;

/// What a record takes of the disk while a store is filled, with some room: rows, indexes, log.
const BYTES: u64 = 1_500;

const MEGABYTE: f64 = 1e6;

#[derive(Parser)]
#[command(about = "A gateway on a store that grows, against one on a store that does not")]
struct Arguments {
    /// With a private PostgreSQL instead of SQLite.
    #[arg(long)]
    postgres: bool,
    /// The binary `semel`. Without it: the one beside this program.
    #[arg(long)]
    semel: Option<PathBuf>,
    /// Steps with more keys than this are left out.
    #[arg(long, default_value_t = STEPS[STEPS.len() - 1], value_parser = clap::value_parser!(u64).range(STEPS[0]..))]
    most: u64,
    /// Rounds of each step; each measures everything once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Clients' connections.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How long each is measured in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Where files go: on a real disk with room for them, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// A store, and how far it is filled.
struct Side {
    kept: Box<dyn Kept>,
    pattern: Option<Pattern>,
    stored: u64,
    /// The keys below this number have been forgotten, but for the first.
    forgotten: u64,
}

/// What is measured on one side in one round.
struct Round {
    new: Answered,
    replayed: Answered,
    started: f64,
    resident: f64,
}

struct Growth<'a> {
    arguments: &'a Arguments,
    runtime: Runtime,
    semel: PathBuf,
    service: SocketAddr,
    load: Load,
    starts: u64,
}

impl Growth<'_> {
    fn gateway(&mut self, side: &Side) -> Result<(Gateway, f64), Failure> {
        self.starts += 1;
        let key = format!("key-of-the-first-request-{:06}", self.starts);
        let (gateway, took) = Gateway::start_timed(&self.semel, self.service, &side.kept.url(), &key)?;
        Ok((gateway, took.as_secs_f64()))
    }

    /// Fills a store up to so many keys. The first one is an operation through a gateway, as everything after it looks.
    fn fill(&self, side: &mut Side, name: &str, to: u64) -> Result<(), Failure> {
        if side.stored == 0 {
            let gateway = Gateway::start(&self.semel, self.service, &side.kept.url())?;
            caller::first_requests(gateway.address, std::iter::once(stored_key(0)))?;
            side.stored = 1;
        }
        let pattern = side.kept.begin()?;
        let begun = (Instant::now(), side.stored);
        while side.stored < to {
            let end = to.min(side.stored + BATCH);
            let records: Vec<_> =
                (side.stored..end).map(|number| pattern.record(number, STEPS[STEPS.len() - 1])).collect();
            side.kept.add(&records)?;
            side.stored = end;
            let rate = (end - begun.1) as f64 / begun.0.elapsed().as_secs_f64();
            progress(&format!("{name}: {} keys stored, {} a second", number(end as f64), number(rate)));
        }
        side.pattern = Some(pattern);
        progress(&format!("{name}: writing what is left to the disk"));
        side.kept.settle()
    }

    fn round(&mut self, side: &Side) -> Result<Round, Failure> {
        let (gateway, started) = self.gateway(side)?;
        let new = self.load.run(gateway.address, Kind::NewKeys)?;
        let replayed = self.load.run(gateway.address, Kind::StoredKeys(side.forgotten, side.stored))?;
        Ok(Round { new, replayed, started, resident: gateway.resident()? as f64 })
    }

    /// Everything at one size.
    fn step(&mut self, name: &str, grown: &mut Side, small: &mut Side) -> Result<Vec<Comparison>, Failure> {
        let sizes = (grown.kept.bytes_for_a_key()?, small.kept.bytes_for_a_key()?);
        let mut rounds = Vec::new();
        for round in 0..=self.arguments.rounds {
            let keys = number(grown.stored as f64);
            progress(&format!(
                "{name}, {keys} keys: round {round} of {} (the first is a warm-up)",
                self.arguments.rounds
            ));
            let (ours, other) = (self.round(grown)?, self.round(small)?);
            if round > 0 {
                rounds.push((ours, other));
            }
        }
        let steady = self.steady(grown, &rounds)?;
        println!(
            "{name}, {} keys: {} operations a second at a steady rate, and the first that is to be forgotten is {:.1} s late in the end",
            number(grown.stored as f64),
            number(steady.made_per_second),
            steady.late
        );
        Ok(comparisons(name, grown.stored, small.stored, sizes, &rounds, &steady))
    }

    /// At half of the rate that the rounds came to, or at less where there would be too few records for it.
    fn steady(&self, grown: &mut Side, rounds: &[(Round, Round)]) -> Result<steady::Steady, Failure> {
        let Some(pattern) = grown.pattern.clone() else { return Err("the store was not filled".into()) };
        // Long enough that a second by which the reaper is later in the end says little.
        let span = Duration::from_secs_f64(self.arguments.seconds * 4.0);
        let left = (grown.stored - grown.forgotten) as f64;
        let fastest = median(&rounds.iter().map(|round| round.0.new.per_second).collect::<Vec<_>>());
        let rate = (fastest / 2.0).min(left / 4.0 / steady::ripe(1.0, span).max(1) as f64);
        progress("as many records are forgotten as arrive");
        let numbers = grown.forgotten..grown.forgotten + steady::ripe(rate, span);
        grown.forgotten = numbers.end;
        steady::run(&self.runtime, &mut *grown.kept, &pattern, numbers, rate, span)
    }
}

/// What a step came to, as points of curves.
fn comparisons(
    store: &str,
    stored: u64,
    small: u64,
    sizes: (f64, f64),
    rounds: &[(Round, Round)],
    steady: &steady::Steady,
) -> Vec<Comparison> {
    let (keys, fewer) = (number(stored as f64), number(small as f64));
    let of = |name: &str, plot: &str, unit, bar, pair: &dyn Fn(&Round, &Round) -> (f64, f64)| {
        let pairs: Vec<_> = rounds.iter().map(|(ours, other)| pair(ours, other)).collect();
        Comparison::of(&format!("{name} ({keys} keys)"), unit, bar, &pairs).at(plot, store, stored as f64)
    };
    let by = |what: &str| format!("{what}, by those at {fewer} keys");
    let mut above =
        of("memory above that of the small store, by 32 MB", "", "MB", Bar::AtMost(1.0), &|ours, other| {
            ((ours.resident - other.resident) / MEGABYTE, 32.0)
        });
    // It is the difference of two curves, and no curve itself.
    above.point = None;
    vec![
        of(&by("new operations"), growth::NEW, "req/s", Bar::AtLeast(0.7), &|ours, other| {
            (ours.new.per_second, other.new.per_second)
        }),
        of(&by("p99 of new operations"), growth::NEW_P99, "ms", Bar::Open, &|ours, other| {
            (ours.new.p99_millis, other.new.p99_millis)
        }),
        of(&by("replays"), growth::REPLAYS, "req/s", Bar::Open, &|ours, other| {
            (ours.replayed.per_second, other.replayed.per_second)
        }),
        of(&by("p99 of replays"), growth::REPLAYS_P99, "ms", Bar::Open, &|ours, other| {
            (ours.replayed.p99_millis, other.replayed.p99_millis)
        }),
        of("memory of the gateway, by 150 MB", growth::MEMORY, "MB", Bar::AtMost(1.0), &|ours, _| {
            (ours.resident / MEGABYTE, 150.0)
        }),
        above,
        of("start to the first answer, by 0.3 s", growth::START, "s", Bar::AtMost(1.0), &|ours, _| {
            (ours.started, 0.3)
        }),
        of(
            &format!("bytes on disk for a key, by those at {fewer} keys"),
            growth::DISK,
            "bytes",
            Bar::Open,
            &|_, _| sizes,
        ),
        of("forgotten, by those whose time is over", growth::FORGOTTEN, "1/s", Bar::AtLeast(0.9), &|_, _| {
            (steady.forgotten_per_second, steady.ended_per_second)
        }),
    ]
}

/// Refuses to begin what would fill the disk.
fn check_room(directory: &Path, most: u64) -> Result<(), Failure> {
    let said = Command::new("df").args(["--output=avail", "-B1"]).arg(directory).output()?;
    let said = String::from_utf8_lossy(&said.stdout);
    let free: Option<u64> = said.lines().nth(1).and_then(|line| line.trim().parse().ok());
    let wanted = most * BYTES;
    match free {
        Some(free) if free < wanted => Err(format!(
            "{} has {} GB free, and {most} keys take up to {} GB: use another --directory, or fewer keys by --most",
            directory.display(),
            free >> 30,
            (wanted >> 30) + 1
        )
        .into()),
        _ => Ok(()),
    }
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let directory = arguments.directory.canonicalize()?;
    check_room(&directory, arguments.most)?;
    // It goes even if this is interrupted, and what it takes is not little.
    let files = Directory::new(&directory, "growth")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cluster = if arguments.postgres { Some(start_postgres(&directory)?) } else { None };
    let make = |name: &str| -> Result<Side, Failure> {
        let handle = runtime.handle().clone();
        let kept: Box<dyn Kept> = match &cluster {
            None => Box::new(sqlite::File::new(files.path().join(format!("{name}.db")), handle)),
            Some(cluster) => {
                let url = runtime.block_on(semel_benches::postgres::database(cluster, name))?;
                Box::new(postgres::Database::new(url, handle))
            }
        };
        // All but the very first one may be forgotten: it is the pattern of those to come.
        Ok(Side { kept, pattern: None, stored: 0, forgotten: 1 })
    };
    let (mut grown, mut small) = (make("grown")?, make("small")?);
    let nginx = Nginx::start(files.path(), None)?;
    let load = Load::new(files.path(), arguments.connections, Duration::from_secs_f64(arguments.seconds))?;
    let semel = semel_benches::binary(arguments.semel.as_deref())?;
    let mut growth =
        Growth { arguments: &arguments, runtime, semel, service: nginx.service, load, starts: 0 };
    let (name, store) = if arguments.postgres { ("PostgreSQL", "postgres") } else { ("SQLite", "sqlite") };
    growth.fill(&mut small, name, STEPS[0])?;
    let mut comparisons = Vec::new();
    for size in STEPS.into_iter().filter(|size| *size <= arguments.most) {
        growth.fill(&mut grown, name, size)?;
        comparisons.extend(growth.step(name, &mut grown, &mut small)?);
        progress("");
        // After each step: the next one may take an hour, and find no room on the disk.
        report(&comparisons, Path::new(&format!("target/bench/growth-{store}.json")))?;
    }
    Ok(())
}

/// With less of a log than other measurements have: it takes room on the disk too.
fn start_postgres(directory: &Path) -> Result<Cluster, String> {
    let settings = ["max_connections = 200", "max_wal_size = 3GB", "shared_buffers = 512MB"];
    Cluster::start_in(directory, &settings)
}
