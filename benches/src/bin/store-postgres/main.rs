//! Engine, batcher and PostgreSQL store against the same two statements, one request at a time.
//!
//! Both sides write the same rows to the same tables of one private server, each in a database of its own, emptied before every
//! round. The other side is what a service without batches does: a statement that reserves and one that completes, prepared, each
//! with a commit of its own.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod driver;
mod pgbench;
mod statements;

use clap::Parser;
use semel::observe::{Observer, StoreCall};
use semel::{Engine, EngineOptions};
use semel_benches::operations::Operations;
use semel_benches::{Bar, Comparison, median, postgres, progress, report};
use semel_postgres::{PgOptions, PgStore};
use semel_testing::servers::Cluster;
use sqlx::{Executor, PgPool, Row};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Connections that the store may open, by default.
const LIMIT: usize = 10;

/// A round of the lone caller is cut into slices. pgbench measures whole seconds.
const SLICES: usize = 3;
const SLICE: Duration = Duration::from_secs(1);

#[derive(Parser)]
#[command(about = "Reserve + complete through the engine, against the same two statements under pgbench")]
struct Arguments {
    /// Rounds; each measures all sides once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Concurrent callers.
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// How many whole seconds each side is measured in a round.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Where the server's files go: on a real disk, and readable by its user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// A database of the server's, with the store's tables.
struct Database {
    url: String,
    pool: PgPool,
}

impl Database {
    async fn make(cluster: &Cluster, name: &'static str) -> Result<Self, Box<dyn Error>> {
        let url = postgres::database(cluster, name).await?;
        PgOptions::new().migrate(&url).await?;
        Ok(Self { pool: PgPool::connect(&url).await?, url })
    }

    async fn empty(&self) -> Result<(), sqlx::Error> {
        self.pool.execute("TRUNCATE semel_records, semel_answers, semel_history").await.map(drop)
    }
}

/// How many requests there are to a batch that writes.
#[derive(Default)]
struct Batches {
    batches: AtomicUsize,
    requests: AtomicUsize,
}

impl Observer for Batches {
    fn batch(&self, call: StoreCall, size: usize) {
        if matches!(call, StoreCall::Create | StoreCall::Swap) {
            self.batches.fetch_add(1, Ordering::Relaxed);
            self.requests.fetch_add(size, Ordering::Relaxed);
        }
    }
}

impl Batches {
    /// On average since it was asked last.
    fn size(&self) -> usize {
        let (batches, requests) =
            (self.batches.swap(0, Ordering::Relaxed), self.requests.swap(0, Ordering::Relaxed));
        (requests / batches.max(1)).max(1)
    }
}

/// Everything that is measured.
struct Sides<'a> {
    runtime: Runtime,
    ours: Database,
    other: Database,
    operations: Operations,
    batches: Arc<Batches>,
    pgbench: pgbench::Side<'a>,
    driver: driver::Side,
}

/// Ours and the other's, round by round.
type Rounds = Vec<(f64, f64)>;

/// What many callers came to, against pgbench in several ways.
struct Many {
    connections: usize,
    /// Requests in a batch of ours.
    batch: f64,
    same: Rounds,
    limit: Rounds,
    one_for_each: Rounds,
    in_batches: Rounds,
}

impl<'a> Sides<'a> {
    fn open(cluster: &'a Cluster) -> Result<Self, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let batches = Arc::new(Batches::default());
        let observer: Arc<dyn Observer> = batches.clone();
        let options = EngineOptions { observer: Some(observer), ..EngineOptions::default() };
        let (ours, other, operations, driver) = runtime.block_on(async {
            let ours = Database::make(cluster, "ours").await?;
            let other = Database::make(cluster, "other").await?;
            let store = PgStore::connect(&ours.url).await?;
            let operations = Operations::through(Engine::with_options(Arc::new(store), options))?;
            let driver = driver::Side::open(&other.url).await?;
            Ok::<_, Box<dyn Error>>((ours, other, operations, driver))
        })?;
        let pgbench = pgbench::Side::new(cluster, "other")?;
        Ok(Self { runtime, ours, other, operations, batches, pgbench, driver })
    }

    fn empty(&self) -> Result<(), sqlx::Error> {
        self.runtime.block_on(self.ours.empty())?;
        self.runtime.block_on(self.other.empty())
    }

    /// Microseconds of one caller: ours and pgbench's, ours and the driver's.
    fn lone(&mut self, rounds: usize) -> Result<(Rounds, Rounds), Box<dyn Error>> {
        let (mut by_pgbench, mut by_driver) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            progress(&format!("one caller, round {round} of {rounds} (the first is a warm-up)"));
            self.empty()?;
            // In slices, so that whatever else the machine does falls on all alike.
            let mut micros = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..SLICES {
                micros[0].extend(self.runtime.block_on(self.operations.run(1, SLICE)).micros());
                micros[1].extend(self.pgbench.run_alone(SLICE)?);
                micros[2].extend(self.runtime.block_on(self.driver.run_alone(SLICE))?);
            }
            if round > 0 {
                let [ours, pgbench, driver] = micros.map(|micros| median(&micros));
                by_pgbench.push((ours, pgbench));
                by_driver.push((ours, driver));
            }
        }
        Ok((by_pgbench, by_driver))
    }

    /// How many connections the store has open.
    fn connections(&self) -> Result<usize, Box<dyn Error>> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'semel'";
        let row = self.runtime.block_on(sqlx::raw_sql(sql).fetch_one(&self.ours.pool))?;
        Ok(usize::try_from(row.try_get::<i64, _>(0)?)?)
    }

    /// Pairs per second of many callers: ours and pgbench's, over as many connections as ours go by, over as many as ours
    /// might, and over one for each caller; and in batches like ours over as many as ours go by.
    fn many(&self, arguments: &Arguments) -> Result<Many, Box<dyn Error>> {
        let span = Duration::from_secs(arguments.seconds.max(1));
        let mut measured = [Vec::new(), Vec::new(), Vec::new()];
        let (mut in_batches, mut sizes_of_batches) = (Vec::new(), Vec::new());
        for round in 0..=arguments.rounds {
            progress(&format!("{} callers, round {round} of {}", arguments.callers, arguments.rounds));
            self.empty()?;
            let _since_then = self.batches.size();
            let ours = self.runtime.block_on(self.operations.run(arguments.callers, span));
            let batch = self.batches.size();
            let sizes = [self.connections()?, LIMIT, arguments.callers];
            for (measured, connections) in measured.iter_mut().zip(sizes) {
                let other = self.pgbench.run(connections, span)?;
                if round > 0 {
                    measured.push((ours.pairs_per_second(), other));
                }
            }
            let other = self.pgbench.run_many(sizes[0], batch, span)?;
            if round > 0 {
                in_batches.push((ours.pairs_per_second(), other));
                sizes_of_batches.push(batch as f64);
            }
        }
        progress("");
        let [same, limit, one_for_each] = measured;
        let batch = median(&sizes_of_batches);
        Ok(Many { connections: self.connections()?, batch, same, limit, one_for_each, in_batches })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let cluster = postgres::start(&arguments.directory)?;
    let mut sides = Sides::open(&cluster)?;
    let (by_pgbench, by_driver) = sides.lone(arguments.rounds)?;
    let Many { connections, batch, same, limit, one_for_each, in_batches } = sides.many(&arguments)?;
    let callers = arguments.callers;
    let many = |connections| format!("{callers} callers, against pgbench -c {connections}");
    println!("{callers} callers share {connections} connections of the store's, in batches of {batch:.0}");
    let comparisons = [
        Comparison::of(&many(connections), "pairs/s", Bar::AtLeast(3.0), &same),
        Comparison::of(&many(LIMIT), "pairs/s", Bar::Open, &limit),
        Comparison::of(&many(callers), "pairs/s", Bar::Open, &one_for_each),
        Comparison::of(
            &format!("{callers} callers, against pgbench in batches of the same size"),
            "pairs/s",
            Bar::Open,
            &in_batches,
        ),
        Comparison::of("one caller, against pgbench -c 1", "us/pair", Bar::AtMost(1.3), &by_pgbench),
        Comparison::of("one caller, against the bare driver", "us/pair", Bar::AtMost(1.3), &by_driver),
    ];
    report(&comparisons, Path::new("target/bench/store-postgres.json"))?;
    Ok(())
}
