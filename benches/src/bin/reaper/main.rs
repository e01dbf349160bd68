//! What it costs that the reaper goes along: as many records are forgotten as arrive.
//!
//! Both sides do whole operations through the engine, with windows of a moment, beside a worker; on one of them the worker reaps. After
//! the windows' length as many records end their window, and as many tombstones their time, as are made. Only then is measured: at a
//! steady rate, which is half of what the store can do, and as fast as it goes. The same is then done through gateways.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod gateways;
mod stores;

use clap::Parser;
use gateways::Gateways;
use semel::observe::Observer;
use semel::{Engine, EngineOptions, Policy, Store};
use semel_benches::operations::Operations;
use semel_benches::reaping::{Forgotten, lateness};
use semel_benches::{Bar, Comparison, progress, report};
use semel_worker::{Reaped, Reaper, ReaperOptions, Worker, WorkerOptions};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stores::Stores;

#[derive(Parser)]
#[command(
    about = "Reserve + complete while as many records are forgotten, against the same without a reaper"
)]
struct Arguments {
    /// On a private PostgreSQL instead of SQLite.
    #[arg(long)]
    postgres: bool,
    /// Rounds; each measures both sides once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Concurrent callers.
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// How long each side is measured in a round. The reaper comes by every second or later, so that what it does in a few of them is a
    /// matter of luck.
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
    /// How long an answer is kept. A tombstone is kept three times as long: longer than the reaper is ever late, or it would find both
    /// over at once, and have less to do than it has where windows last for hours.
    #[arg(long, default_value_t = 1.0)]
    window: f64,
    /// The binary `semel`. Without it: the one beside this program.
    #[arg(long)]
    semel: Option<PathBuf>,
    /// Clients' connections to the gateway.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Where files go: on a real disk, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// How many windows a tombstone lasts.
const TOMBSTONE: u32 = 3;

/// One side of one round.
struct Side {
    made_per_second: f64,
    forgotten_per_second: f64,
    /// By how many seconds the first that is to be forgotten is late in the end.
    late: f64,
}

/// Where the first that is to be forgotten is later than this when the load ends, the reaper does not keep up. It comes by every second or a
/// little later, and hurries as it can from two seconds on. (How many are forgotten in a few seconds says less: it depends on how fast
/// they were made as long before as they last.)
const KEEPS_UP: f64 = 2.0;

async fn side(
    store: Arc<dyn Store>,
    arguments: &Arguments,
    rate: Option<f64>,
    reaping: bool,
) -> Result<Side, Box<dyn Error>> {
    let forgotten = Arc::new(Forgotten::default());
    let observer: Arc<dyn Observer> = forgotten.clone();
    let options = EngineOptions { observer: Some(observer), ..EngineOptions::default() };
    let engine = Engine::with_options(Arc::clone(&store), options);
    let window = Duration::from_secs_f64(arguments.window);
    let tombstone = window * TOMBSTONE;
    let policy = Policy { retention: window, body_retention: window, tombstone, ..Policy::default() };
    let operations = Operations::through(engine.clone())?.with_policy(policy);
    let reaper = reaping.then(ReaperOptions::default);
    let worker = Worker::new(engine, WorkerOptions { reaper, ..WorkerOptions::default() });
    let working = tokio::spawn(worker.run(std::future::pending()));

    // Until tombstones end too, and once more as long: the first of them ended at the speed at which they were made, without anybody
    // beside them who forgets.
    operations.run_at(rate, arguments.callers, (window + tombstone) * 2 + Duration::from_secs(2)).await;
    let before = forgotten.count();
    let made = operations.run_at(rate, arguments.callers, Duration::from_secs_f64(arguments.seconds)).await;
    let gone = forgotten.count() - before;
    let late = lateness(&*store).await?;
    working.abort();
    Ok(Side {
        made_per_second: made.pairs_per_second(),
        forgotten_per_second: gone as f64 / arguments.seconds,
        late,
    })
}

/// How many microseconds it takes to make a record, and to forget it (the window and the tombstone), each with the machine to itself.
async fn costs(store: Arc<dyn Store>, arguments: &Arguments) -> Result<(f64, f64), Box<dyn Error>> {
    let engine = Engine::with_options(store, EngineOptions::default());
    let at_once = Duration::ZERO;
    let span = Duration::from_secs_f64(arguments.seconds) / 8;
    let tombstone = span * TOMBSTONE;
    let policy = Policy { retention: at_once, body_retention: at_once, tombstone, ..Policy::default() };
    let operations = Operations::through(engine.clone())?.with_policy(policy);
    let made = operations.run(arguments.callers, span).await.pairs_per_second();
    let reaper = Reaper::new(engine, ReaperOptions { pause: Duration::ZERO, ..ReaperOptions::default() });
    // Twice: when no tombstone is over yet, and when all are.
    let (mut took, mut forgotten) = (Duration::ZERO, 0);
    for _ in 0..2 {
        let begun = Instant::now();
        loop {
            let reaped = reaper.round().await?;
            if reaped == Reaped::default() {
                break;
            }
            forgotten += reaped.removed;
        }
        took += begun.elapsed();
        tokio::time::sleep(tombstone).await;
    }
    Ok((took.as_secs_f64() * 1e6 / forgotten.max(1) as f64, 1e6 / made))
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let stores = Stores::start(&arguments.directory, arguments.postgres)?;
    let name = stores.name();
    let semel = semel_benches::binary(arguments.semel.as_deref())?;
    let gateways =
        Gateways::before_nginx(semel, &arguments.directory, arguments.connections, arguments.seconds)?;
    let measure = |rate, reaping| {
        runtime.block_on(async {
            let store = stores.open().await?;
            side(store, &arguments, rate, reaping).await
        })
    };
    progress(&format!("{name}: how fast it goes"));
    let fastest = measure(None, false)?.made_per_second;
    let (mut steady, mut saturated, mut through_gateways) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    let mut cost = Vec::new();
    for round in 1..=arguments.rounds {
        progress(&format!("{name}, round {round} of {}", arguments.rounds));
        // Each side goes first in every other round.
        let with_first = round % 2 == 1;
        for (rounds, rate) in [(&mut steady, Some(fastest / 2.0)), (&mut saturated, None)] {
            let (with, without) = both(with_first, &|reaping| measure(rate, reaping))?;
            rounds.add(&with, &without);
        }
        let (with, without) = both(with_first, &|reaping| {
            let address = runtime.block_on(stores.empty())?;
            let late = || runtime.block_on(async { Ok(lateness(&*stores::at(&address).await?).await?) });
            gateways.side(&address, reaping, &late)
        })?;
        through_gateways.add(&with, &without);
        cost.push(runtime.block_on(async { costs(stores.open().await?, &arguments).await })?);
    }
    progress("");
    println!("{name}, {} callers, {:.0} a second at a steady rate", arguments.callers, fastest / 2.0);
    let mut comparisons = Vec::new();
    for (what, rounds, unit) in [
        ("steady", &steady, "pairs/s"),
        ("fastest", &saturated, "pairs/s"),
        ("gateway, fastest", &through_gateways, "req/s"),
    ] {
        let mut add = |compared: &str, unit, bar, rounds: &[(f64, f64)]| {
            comparisons.push(Comparison::of(&format!("{what}: {compared}"), unit, bar, rounds));
        };
        add("with a reaper by without", unit, Bar::AtLeast(0.9), &rounds.throughput);
        add("records forgotten by made", "1/s", Bar::Open, &rounds.forgotten);
        add("late in the end, by 2 s", "s", Bar::AtMost(1.0), &rounds.late);
    }
    comparisons.push(Comparison::of("forgetting alone, by making alone", "us/record", Bar::Open, &cost));
    report(&comparisons, Path::new(&format!("target/bench/reaper-{}.json", name.to_lowercase())))?;
    Ok(())
}

/// With a reaper and without, in this order or the other.
fn both<T>(
    with_first: bool,
    measure: &dyn Fn(bool) -> Result<T, Box<dyn Error>>,
) -> Result<(T, T), Box<dyn Error>> {
    let (first, second) = (measure(with_first)?, measure(!with_first)?);
    Ok(if with_first { (first, second) } else { (second, first) })
}

/// What the rounds of one rate came to.
#[derive(Default)]
struct Rounds {
    throughput: Vec<(f64, f64)>,
    forgotten: Vec<(f64, f64)>,
    late: Vec<(f64, f64)>,
}

impl Rounds {
    fn add(&mut self, with: &Side, without: &Side) {
        self.throughput.push((with.made_per_second, without.made_per_second));
        self.forgotten.push((with.forgotten_per_second, with.made_per_second));
        self.late.push((with.late, KEEPS_UP));
    }
}
