//! Events through the outbox on PostgreSQL, from the application's transaction to the receiver's word, against the bare INSERT.
//!
//! Both sides write the same rows in the same batches over as many connections, each in a database of its own on one private server.
//! The bare side stops there. Ours also takes every event to a receiver and deletes it, and is done when the outbox is empty.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod appenders;
mod receiver;

use appenders::{Appenders, Way};
use clap::Parser;
use receiver::Receiver;
use semel_benches::{Bar, Comparison, progress, report};
use semel_postgres::PgStore;
use semel_private_postgres::Cluster;
use semel_relay::outbox::postgres::PgOutbox;
use semel_relay::outbox::{Publisher, PublisherOptions};
use sqlx::Executor as _;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

type Failure = Box<dyn Error + Send + Sync>;

/// No checkpoint falls on one side and not on the other.
const SETTINGS: [&str; 4] =
    ["max_connections = 200", "max_wal_size = 8GB", "checkpoint_timeout = 1h", "shared_buffers = 512MB"];

#[derive(Parser)]
#[command(about = "Events through the outbox on PostgreSQL, against the bare INSERT")]
struct Arguments {
    /// Rounds; each measures all sides once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Events per round and side.
    #[arg(long, default_value_t = 100_000)]
    events: usize,
    /// Events per transaction.
    #[arg(long, default_value_t = 100)]
    batch: usize,
    /// Connections that append.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// Aggregates that the events are of.
    #[arg(long, default_value_t = 10_000)]
    aggregates: usize,
    /// Where the server's files go: on a real disk, and readable by its user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// A database of the server's, with the store's tables.
async fn database(cluster: &Cluster, name: &'static str) -> Result<PgStore, Failure> {
    let maintenance = sqlx::PgPool::connect(&cluster.url("postgres")).await?;
    maintenance.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"))).await?;
    Ok(PgStore::connect(&cluster.url(name)).await?)
}

fn per_second(events: usize, took: Duration) -> f64 {
    events as f64 / took.as_secs_f64()
}

/// Publishes until so many events have arrived and are deleted; how long that took from `begun`.
async fn publish(store: &PgStore, events: usize, begun: Instant) -> Result<Duration, Failure> {
    let receiver = Receiver::default();
    let publisher = Publisher::new(PgOutbox::of(store), receiver.clone(), PublisherOptions::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(publisher.run(async move { drop(stopped.await) }));
    receiver.until(events).await;
    // With what became of the last batch written down.
    drop(stop);
    running.await?;
    Ok(begun.elapsed())
}

async fn measure(arguments: &Arguments, cluster: &Cluster) -> Result<Vec<Comparison>, Failure> {
    let (ours, bare) = (database(cluster, "ours").await?, database(cluster, "bare").await?);
    let appenders = |store: &PgStore, way| Appenders::new(store.pool().clone(), way, arguments);
    let (mut through, mut drained) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("round {round} of {} (the first is a warm-up)", arguments.rounds));
        bare.pool().execute("TRUNCATE semel_outbox").await?;
        let begun = Instant::now();
        appenders(&bare, Way::Insert).run().await?;
        let inserted = per_second(arguments.events, begun.elapsed());

        let begun = Instant::now();
        let appending = tokio::spawn(appenders(&ours, Way::Append).run());
        let took = publish(&ours, arguments.events, begun).await?;
        appending.await??;

        appenders(&ours, Way::Append).run().await?;
        let alone = publish(&ours, arguments.events, Instant::now()).await?;
        if round > 0 {
            through.push((per_second(arguments.events, took), inserted));
            drained.push((per_second(arguments.events, alone), inserted));
        }
    }
    progress("");
    Ok(vec![
        Comparison::of(
            "appended and published, against the bare INSERT",
            "events/s",
            Bar::AtLeast(0.5),
            &through,
        ),
        Comparison::of("published out of a full outbox, against the same", "events/s", Bar::Open, &drained),
    ])
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let cluster = Cluster::start_in(&arguments.directory.canonicalize()?, &SETTINGS)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let comparisons = runtime.block_on(measure(&arguments, &cluster))?;
    report(&comparisons, Path::new("target/bench/outbox.json"))?;
    Ok(())
}
