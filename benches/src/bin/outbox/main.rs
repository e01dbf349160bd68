//! Events through the outbox on PostgreSQL, from the application's transaction to the receiver's word, against the two halves of it
//! alone: the bare INSERT of the same rows, and the bare publishing of the same messages.
//!
//! All sides write the same rows in the same batches over as many connections, ours and the bare one each in a database of its own on
//! one private server, and publish to the same stream of one private NATS. Ours is done when the outbox is empty. A receiver that
//! confirms at once shows what the outbox costs by itself.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod appenders;
mod broker;
mod receiver;

use appenders::{Appenders, Way, events};
use broker::Broker;
use clap::Parser;
use receiver::{AtOnce, Counting};
use semel_benches::{Bar, Comparison, postgres, progress, report};
use semel_events::outbox::postgres::PgOutbox;
use semel_events::outbox::{Publisher, PublisherOptions};
use semel_events::sink::Sink;
use semel_postgres::PgStore;
use semel_testing::servers::Cluster;
use sqlx::Executor as _;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Parser)]
#[command(
    about = "Events through the outbox on PostgreSQL to NATS, against the bare INSERT and the bare publishing"
)]
struct Arguments {
    /// Rounds; each measures all sides once.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Events per round and side.
    #[arg(long, default_value_t = 40_000)]
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
    /// Lets NATS sync every two minutes, as it does by default, and not before each confirmation.
    #[arg(long)]
    nats_unsynced: bool,
    /// Where the server's files go: on a real disk, and readable by its user.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

/// A database of the server's, with the store's tables.
async fn database(cluster: &Cluster, name: &'static str) -> Result<PgStore, Failure> {
    Ok(PgStore::connect(&postgres::database(cluster, name).await?).await?)
}

/// Publishes until so many events have arrived and are deleted; how long that took from `begun`.
async fn publish(
    store: &PgStore,
    sink: impl Sink + Clone,
    events: usize,
    begun: Instant,
) -> Result<Duration, Failure> {
    let receiver = Counting::new(sink);
    let publisher = Publisher::new(PgOutbox::of(store), receiver.clone(), PublisherOptions::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(publisher.run(async move { drop(stopped.await) }));
    receiver.until(events).await;
    // With what became of the last batch written down.
    drop(stop);
    running.await?;
    Ok(begun.elapsed())
}

/// The sides of one round, in events per second.
struct Round {
    inserted: f64,
    sent: f64,
    through_nats: f64,
    through: f64,
    drained: f64,
}

struct Sides<'a> {
    arguments: &'a Arguments,
    ours: PgStore,
    bare: PgStore,
    broker: Broker,
}

impl Sides<'_> {
    async fn round(&self) -> Result<Round, Failure> {
        let count = self.arguments.events;
        Ok(Round {
            inserted: self.per_second(self.insert().await?),
            sent: self.per_second(self.send().await?),
            through_nats: {
                let took = self.through(self.broker.sink()).await?;
                self.broker.empty(count).await?;
                self.per_second(took)
            },
            through: self.per_second(self.through(AtOnce).await?),
            drained: {
                self.appenders(&self.ours, Way::Append).run().await?;
                self.per_second(publish(&self.ours, AtOnce, count, Instant::now()).await?)
            },
        })
    }

    fn per_second(&self, took: Duration) -> f64 {
        self.arguments.events as f64 / took.as_secs_f64()
    }

    fn appenders(&self, store: &PgStore, way: Way) -> Appenders {
        Appenders::new(store.pool().clone(), way, self.arguments)
    }

    async fn insert(&self) -> Result<Duration, Failure> {
        self.bare.pool().execute("TRUNCATE semel_outbox").await?;
        let appenders = self.appenders(&self.bare, Way::Insert);
        let begun = Instant::now();
        appenders.run().await?;
        Ok(begun.elapsed())
    }

    async fn send(&self) -> Result<Duration, Failure> {
        let events = events(self.arguments);
        let begun = Instant::now();
        self.broker.publish(events).await?;
        let took = begun.elapsed();
        self.broker.empty(self.arguments.events).await?;
        Ok(took)
    }

    async fn through(&self, sink: impl Sink + Clone) -> Result<Duration, Failure> {
        let appenders = self.appenders(&self.ours, Way::Append);
        let begun = Instant::now();
        let appending = tokio::spawn(appenders.run());
        let took = publish(&self.ours, sink, self.arguments.events, begun).await?;
        appending.await??;
        let mut left = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM semel_outbox")
            .fetch_all(self.ours.pool())
            .await?;
        match left.pop() {
            Some(0) => Ok(took),
            left => Err(format!("the outbox is not empty: {left:?}").into()),
        }
    }
}

async fn measure(arguments: &Arguments, cluster: &Cluster) -> Result<Vec<Comparison>, Failure> {
    let sides = Sides {
        arguments,
        ours: database(cluster, "ours").await?,
        bare: database(cluster, "bare").await?,
        broker: Broker::start(arguments.nats_unsynced).await?,
    };
    let mut rounds = Vec::new();
    for number in 0..=arguments.rounds {
        progress(&format!("round {number} of {} (the first is a warm-up)", arguments.rounds));
        let round = sides.round().await?;
        if number > 0 {
            rounds.push(round);
        }
    }
    progress("");
    let of = |name: &str, bar: Bar, pair: fn(&Round) -> (f64, f64)| {
        Comparison::of(name, "events/s", bar, &rounds.iter().map(pair).collect::<Vec<_>>())
    };
    Ok(vec![
        of("appended and published to NATS, against the slower of both alone", Bar::AtLeast(0.5), |round| {
            (round.through_nats, round.inserted.min(round.sent))
        }),
        of("the same, against the bare INSERT", Bar::Open, |round| (round.through_nats, round.inserted)),
        of("the same, against the bare publishing", Bar::Open, |round| (round.through_nats, round.sent)),
        of("to a receiver that confirms at once, against the bare INSERT", Bar::AtLeast(0.5), |round| {
            (round.through, round.inserted)
        }),
        of("out of a full outbox to such a receiver, against the same", Bar::Open, |round| {
            (round.drained, round.inserted)
        }),
    ])
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    std::fs::create_dir_all(&arguments.directory)?;
    let cluster = postgres::start(&arguments.directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let comparisons = runtime.block_on(measure(&arguments, &cluster))?;
    report(&comparisons, Path::new("target/bench/outbox.json"))?;
    Ok(())
}
