//! What it costs that the reaper goes along: as many records are forgotten as arrive.
//!
//! Both sides do whole operations through the engine, with windows of a moment, beside a worker; on one of them the worker reaps. After
//! the windows' length as many records end their window, and as many tombstones their time, as are made. Only then is measured.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod stores;

use clap::Parser;
use semel::observe::{Event, Observer};
use semel::{DueKind, DueQuery, Engine, EngineOptions, Policy, Store};
use semel_benches::operations::Operations;
use semel_benches::{Bar, Comparison, median, progress, report};
use semel_relay::{ReaperOptions, Worker, WorkerOptions};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use stores::{Postgres, Sqlite, Stores};

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
    /// How long each side is measured in a round.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// How long an answer is kept, and a tombstone after it.
    #[arg(long, default_value_t = 1.0)]
    window: f64,
    /// Where files go: on a real disk, and readable by PostgreSQL's user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// Counts what was forgotten.
#[derive(Default)]
struct Forgotten(AtomicU64);

impl Observer for Forgotten {
    fn count(&self, _operation: &str, event: Event) {
        if event == Event::TtlPruned {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// One side of one round.
struct Side {
    pairs_per_second: f64,
    forgotten_per_second: f64,
    /// By how much what is to be forgotten is late, in seconds: in the middle, and at the end.
    late: (f64, f64),
}

async fn side(store: Arc<dyn Store>, arguments: &Arguments, reaping: bool) -> Result<Side, Box<dyn Error>> {
    let forgotten = Arc::new(Forgotten::default());
    let observer: Arc<dyn Observer> = forgotten.clone();
    let options = EngineOptions { observer: Some(observer), ..EngineOptions::default() };
    let engine = Engine::with_options(Arc::clone(&store), options);
    let window = Duration::from_secs_f64(arguments.window);
    let policy = Policy { retention: window, body_retention: window, tombstone: window, ..Policy::default() };
    let operations = Operations::through(engine.clone())?.with_policy(policy);
    let reaper = reaping.then(ReaperOptions::default);
    let worker = Worker::new(engine, WorkerOptions { reaper, ..WorkerOptions::default() });
    let working = tokio::spawn(worker.run(std::future::pending()));

    // Until tombstones end too, and the reaper has come by.
    operations.run(arguments.callers, window * 2 + Duration::from_secs(1)).await;
    let half = Duration::from_secs_f64(arguments.seconds) / 2;
    let before = forgotten.0.load(Ordering::Relaxed);
    let first = operations.run(arguments.callers, half).await;
    let middle = lateness(&*store).await?;
    let second = operations.run(arguments.callers, half).await;
    let gone = forgotten.0.load(Ordering::Relaxed) - before;
    let end = lateness(&*store).await?;
    working.abort();
    Ok(Side {
        pairs_per_second: f64::midpoint(first.pairs_per_second(), second.pairs_per_second()),
        forgotten_per_second: gone as f64 / arguments.seconds,
        late: (middle, end),
    })
}

/// By how many seconds the record is late that should have been seen to first.
async fn lateness(store: &dyn Store) -> Result<f64, Box<dyn Error>> {
    let mut latest = Duration::ZERO;
    for kind in [DueKind::Window, DueKind::Purge] {
        let answer = store.due(DueQuery { kind, after: None, limit: 1 }).await?;
        for (_, since) in answer.items.iter().filter_map(semel::Record::due) {
            latest = latest.max(answer.now.after(since));
        }
    }
    Ok(latest.as_secs_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (stores, name): (Box<dyn Stores>, _) = if arguments.postgres {
        (Box::new(Postgres::start(&arguments.directory)?), "PostgreSQL")
    } else {
        (Box::new(Sqlite::in_directory(&arguments.directory)?), "SQLite")
    };
    let (mut throughput, mut kept_up, mut late) = (Vec::new(), Vec::new(), (Vec::new(), Vec::new()));
    for round in 0..=arguments.rounds {
        progress(&format!("{name}, round {round} of {} (the first is a warm-up)", arguments.rounds));
        let measure = |reaping| {
            runtime.block_on(async {
                let store = stores.open().await?;
                side(store, &arguments, reaping).await
            })
        };
        // Each of them goes first in every other round.
        let (with, without) = if round % 2 == 0 {
            let without = measure(false)?;
            (measure(true)?, without)
        } else {
            (measure(true)?, measure(false)?)
        };
        if round > 0 {
            throughput.push((with.pairs_per_second, without.pairs_per_second));
            kept_up.push((with.forgotten_per_second, with.pairs_per_second));
            late.0.push(with.late.0);
            late.1.push(with.late.1);
        }
    }
    progress("");
    println!(
        "{} callers; what is to be forgotten is {:.1} s late in the middle of a round and {:.1} s at its end",
        arguments.callers,
        median(&late.0),
        median(&late.1)
    );
    let comparisons = [
        Comparison::of(
            "reserve + complete, with a reaper by without",
            "pairs/s",
            Bar::AtLeast(0.9),
            &throughput,
        ),
        Comparison::of("records forgotten by records made", "1/s", Bar::AtLeast(0.9), &kept_up),
    ];
    report(&comparisons, Path::new(&format!("target/bench/reaper-{}.json", name.to_lowercase())))?;
    Ok(())
}
