//! `semel-simulator`: runs seeds, until time or operations are used up or one fails.
#![allow(clippy::print_stdout, reason = "it is a command")]

use clap::Parser;
use semel_simulator::{Counts, Fault, Report, Setup, again, run, shrink, timeline};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// Runs the production engine, layer and workers under virtual time, with faults that a seed draws.
#[derive(Parser)]
struct Arguments {
    /// This seed alone, or the first of several. Without it, one that nobody has seen
    #[arg(long)]
    seed: Option<u64>,
    /// Go on with the next seeds for so many minutes
    #[arg(long)]
    minutes: Option<f64>,
    /// Go on with the next seeds for so many operations in all
    #[arg(long)]
    total: Option<u64>,
    /// Operations of one run
    #[arg(long, default_value_t = 600)]
    operations: u32,
    /// These faults alone; may be given several times
    #[arg(long)]
    only: Vec<Fault>,
    /// How often each kind of fault strikes, from 0 to 1 of what it may at most. Without it, every run draws that for each kind
    #[arg(long)]
    density: Option<f64>,
    /// Go on after a run that failed, and do not make it smaller
    #[arg(long)]
    keep_going: bool,
    /// End at a run that failed, without making it smaller
    #[arg(long)]
    no_shrinking: bool,
    /// Print the whole trace
    #[arg(long)]
    trace: bool,
}

#[derive(Default)]
struct Sums {
    runs: u64,
    failed: Vec<u64>,
    counts: Counts,
    faults: BTreeMap<&'static str, u64>,
    answers: BTreeMap<String, u64>,
    sometimes: BTreeMap<String, u64>,
}

fn main() -> ExitCode {
    match all(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            println!("the simulator cannot run: {error}");
            ExitCode::from(2)
        }
    }
}

fn all(arguments: &Arguments) -> Result<bool, std::io::Error> {
    let first = arguments.seed.unwrap_or_else(fresh);
    println!("seeds from {first}");
    let (begun, mut shown) = (Instant::now(), Instant::now());
    let mut sums = Sums::default();
    for seed in first.. {
        let setup = Setup {
            operations: arguments.operations,
            only: arguments.only.clone(),
            density: arguments.density,
            keep_text: arguments.trace,
            ..Setup::of(seed)
        };
        let report = run(&setup)?;
        sums.add(&report);
        if let Some(text) = &report.text {
            print!("{text}");
        }
        if !report.violations.is_empty() {
            sums.failed.push(seed);
            if arguments.keep_going {
                println!(
                    "seed {seed}: {} violations, the first: {}",
                    report.violations.len(),
                    report.violations[0]
                );
            } else {
                println!("{} operations until then", sums.counts.operations);
                explain(&setup, report, arguments)?;
                return Ok(false);
            }
        }
        let is_over = match (arguments.minutes, arguments.total) {
            (None, None) => true,
            (minutes, total) => {
                minutes.is_some_and(|minutes| begun.elapsed().as_secs_f64() >= minutes * 60.0)
                    || total.is_some_and(|total| sums.counts.operations >= total)
            }
        };
        if is_over {
            break;
        }
        if shown.elapsed() > Duration::from_secs(5) {
            shown = Instant::now();
            println!("{}", sums.line(begun.elapsed()));
        }
    }
    println!("{}", sums.line(begun.elapsed()));
    sums.tables();
    Ok(sums.failed.is_empty())
}

/// A seed that nobody has seen.
fn fresh() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_secs() * 1_000_000
}

impl Sums {
    fn add(&mut self, report: &Report) {
        self.runs += 1;
        self.counts = self.counts.and(report.counts);
        for (fault, _) in &report.struck {
            *self.faults.entry(fault.as_str()).or_default() += 1;
        }
        for (answer, count) in &report.answers {
            *self.answers.entry(answer.clone()).or_default() += count;
        }
        for (sight, count) in &report.sometimes {
            *self.sometimes.entry(sight.clone()).or_default() += count;
        }
    }

    fn line(&self, took: Duration) -> String {
        let Counts { operations, requests, starts, effects, faults, seconds } = self.counts;
        #[expect(clippy::cast_precision_loss, reason = "it is shown to a few digits")]
        let per_minute = |seconds: f64| operations as f64 / seconds * 60.0;
        let core = on_the_core();
        format!(
            "{} runs, {operations} operations, {requests} requests, {starts} starts, {effects} effects, {faults} faults, {} h simulated, {} failed; {:.0} s, {:.0} operations a minute ({:.0} a minute of one core)",
            self.runs,
            seconds / 3_600,
            self.failed.len(),
            took.as_secs_f64(),
            per_minute(took.as_secs_f64()),
            per_minute(core.unwrap_or(took).as_secs_f64()),
        )
    }

    fn tables(&self) {
        let faults: Vec<_> = self.faults.iter().map(|(fault, count)| format!("{fault} {count}")).collect();
        println!("faults: {}", faults.join(", "));
        let answers: Vec<_> =
            self.answers.iter().map(|(answer, count)| format!("{answer} {count}")).collect();
        println!("answers: {}", answers.join(", "));
        let sometimes: Vec<_> =
            self.sometimes.iter().map(|(sight, count)| format!("{sight} {count}")).collect();
        println!("sometimes: {}", sometimes.join(", "));
    }
}

/// How long this thread has had a core: the machine may have others to serve.
fn on_the_core() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Says what a failing run did, with as few faults as it takes.
fn explain(setup: &Setup, report: Report, arguments: &Arguments) -> Result<(), std::io::Error> {
    println!(
        "\nseed {} FAILED: {} violations, {} faults",
        setup.seed,
        report.violations.len(),
        report.struck.len()
    );
    report.violations.iter().take(20).for_each(|violation| println!("  VIOLATION {violation}"));
    if arguments.no_shrinking {
        return Ok(());
    }
    let shrunk = shrink(setup, report, Duration::from_secs(60))?;
    println!("\nof the faults these are enough ({} runs):", shrunk.tries);
    for (fault, number) in &shrunk.report.struck {
        println!("  {} {number}", fault.as_str());
    }
    if let Some(first) = shrunk.report.violations.first() {
        println!(
            "\n{first}\n\nwhat happened to that operation, and to everybody:\n{}",
            timeline(&shrunk.report)
        );
    }
    println!("again: {}", again(setup));
    Ok(())
}
