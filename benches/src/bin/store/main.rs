//! Engine, batcher and SQLite store against a bare loop over the same statements.
//!
//! Both sides write the same rows to files on the same disk with the same settings. The bare loop is what SQLite itself can do: one
//! connection, prepared statements, parameters made beforehand, batches of the size that the store had in the round before.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod bare;
mod engine;

use clap::Parser;
use semel_benches::{Bar, Comparison, progress, report};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

    let ours = runtime.block_on(engine::Side::open(&files.path().join("engine.db")))?;
    let mut bare = bare::Side::open(&runtime, &files.path().join("bare.db"))?;
    let (mut throughput, mut latency, mut batches) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=arguments.rounds {
        progress(&format!("round {round} of {} (the first is a warm-up)", arguments.rounds));
        let many = runtime.block_on(ours.run(arguments.callers, span));
        let bare_many = bare.run(many.items_per_commit(), span)?;
        let lone = runtime.block_on(ours.run(1, span / 2));
        let bare_lone = bare.run_alone(span / 2)?;
        if round > 0 {
            throughput.push((many.pairs_per_second(), bare_many));
            latency.push((lone.median_micros(), bare_lone));
            batches.push(many.items_per_commit() as f64);
        }
    }
    progress("");
    println!("{} callers, {:.0} items per commit", arguments.callers, semel_benches::median(&batches));
    let comparisons = [
        Comparison::of("reserve + complete, concurrent", "pairs/s", Bar::AtLeast(0.6), &throughput),
        Comparison::of("reserve + complete, one caller", "us/pair", Bar::AtMost(1.5), &latency),
    ];
    report(&comparisons, Path::new("target/bench/store.json"))?;
    Ok(())
}
