//! Engine, batcher and SQLite store against a bare loop over the same statements.
//!
//! Both sides write the same rows to files on the same disk with the same settings. The bare loop is what SQLite itself can do: one
//! connection, prepared statements, parameters made beforehand, batches of the size that the store had in the round before.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod bare;
mod engine;

use clap::Parser;
use semel_benches::{Bar, Comparison, disk, median, progress, report};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Into how many slices a round of the lone caller is cut.
const SLICES: u32 = 10;

#[derive(Parser)]
#[command(about = "Reserve + complete through the engine, against the bare SQLite statements")]
struct Arguments {
    /// Rounds; each measures both sides once.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Concurrent callers.
    #[arg(long, default_value_t = 128)]
    callers: usize,
    /// How long each side is measured in a round.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The directory of the database files; must be on a real disk.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let span = Duration::from_secs_f64(arguments.seconds);
    std::fs::create_dir_all(&arguments.directory)?;
    let files = tempfile::tempdir_in(&arguments.directory)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;

    let open = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
        let ours = runtime.block_on(engine::Side::open(&files.path().join(format!("{name}-engine.db"))))?;
        Ok((ours, bare::Side::open(&runtime, &files.path().join(format!("{name}-bare.db")))?))
    };
    let (lone, mut bare_lone) = open("lone")?;
    let (mut latency, mut by_syncs) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("one caller, round {round} of {} (the first is a warm-up)", arguments.rounds));
        // In slices, so that whatever else the disk does falls on both alike.
        let (mut ours, mut other, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SLICES {
            ours.extend(runtime.block_on(lone.run(1, span / SLICES)).0.micros());
            other.extend(bare_lone.run_alone(span / SLICES)?);
            syncs.extend(disk::synced_appends(&files.path().join("appended"), span / SLICES)?);
        }
        if round > 0 {
            latency.push((median(&ours), median(&other)));
            by_syncs.push((median(&ours), 2.0 * median(&syncs)));
        }
    }
    let (many, mut bare_many) = open("many")?;
    let (mut throughput, mut batches) = (Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("{} callers, round {round} of {}", arguments.callers, arguments.rounds));
        let (ours, items_per_commit) = runtime.block_on(many.run(arguments.callers, span));
        let other = bare_many.run(items_per_commit, span)?;
        if round > 0 {
            throughput.push((ours.pairs_per_second(), other));
            batches.push(items_per_commit as f64);
        }
    }
    progress("");
    println!("{} callers, {:.0} items per commit", arguments.callers, median(&batches));
    let comparisons = [
        Comparison::of("reserve + complete, concurrent", "pairs/s", Bar::AtLeast(0.6), &throughput),
        Comparison::of("reserve + complete, one caller", "us/pair", Bar::AtMost(1.5), &latency),
        Comparison::of("the same, by two bare fdatasyncs of 4 KiB", "us/pair", Bar::Open, &by_syncs),
    ];
    report(&comparisons, Path::new("target/bench/store-sqlite.json"))?;
    Ok(())
}
