//! Whole runs: seeds that are kept, seeds that nobody has seen, and that a run is the same whenever it is repeated.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test fails by a panic, and says what it ran")]
#![allow(clippy::panic, reason = "a run that failed says what happened")]

use semel_simulator::{Fault, Report, Setup, again, run, shrink, timeline};
use std::time::{Duration, Instant, SystemTime};

fn ran(setup: &Setup) -> Report {
    run(setup).expect("a runtime can be built")
}

fn passes(setup: &Setup) -> Report {
    let report = ran(setup);
    assert!(report.is_freed, "seed {}: something of the run is left in memory", setup.seed);
    if report.violations.is_empty() {
        return report;
    }
    let violations = report.violations.clone();
    let shrunk = shrink(setup, report, Duration::from_secs(60)).expect("a runtime can be built");
    panic!(
        "{violations:#?}\nof the faults these are enough: {:?}\nwhat happened to that operation, and to everybody:\n{}again: {}",
        shrunk.report.struck,
        timeline(&shrunk.report),
        again(setup)
    );
}

/// Each of these has found something once, in the product or in the judgement.
#[test]
fn kept_seeds_hold_every_promise() {
    let lines = include_str!("../seeds.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut words = line.split_whitespace();
        let mut number =
            || words.next().and_then(|word| word.parse::<u64>().ok()).expect("a seed and a size");
        let (seed, operations) = (number(), number());
        passes(&Setup { operations: u32::try_from(operations).expect("a size"), ..Setup::of(seed) });
    }
}

#[test]
fn two_runs_of_one_seed_are_the_same_byte_by_byte() {
    for seed in 1..=24 {
        let setup = Setup { operations: 60, keep_text: true, ..Setup::of(seed) };
        let (first, second) = (ran(&setup), ran(&setup));
        assert!(first.text == second.text, "seed {seed}");
        assert_eq!(first.trace, second.trace);
        assert!(first.trace.1 > 300, "seed {seed}: {} lines", first.trace.1);
    }
}

#[test]
fn other_seeds_make_other_runs() {
    let hash = |seed| ran(&Setup { operations: 40, ..Setup::of(seed) }).trace;
    assert_ne!(hash(1), hash(2));
}

#[test]
#[ignore = "store-damaged and operator-late strike too seldom in runs as short as these"]
fn every_fault_strikes_and_none_breaks_a_promise() {
    let doubt = [Fault::ProviderAfter, Fault::AnswerLost];
    let (mut effects, mut answers) = (0, 0);
    for fault in Fault::ALL.iter().filter(|fault| **fault != Fault::Failover) {
        let strikes = (1..12).any(|seed| {
            let only = [&doubt[..], &[*fault]].concat();
            let report = passes(&Setup { operations: 40, only, ..Setup::of(seed) });
            effects += report.counts.effects;
            answers += report.answers.get("Paid").copied().unwrap_or(0);
            report.struck.iter().any(|(struck, _)| struck == fault)
        });
        assert!(strikes, "{} never strikes", fault.as_str());
    }
    assert!(effects > 500 && answers > 500, "{effects} effects, {answers} answers");
}

#[test]
fn a_store_that_forgets_what_it_acknowledged_is_found_out_and_the_run_explains_itself() {
    let failing = (1..20).find_map(|seed| {
        let setup =
            Setup { operations: 100, only: vec![Fault::Failover, Fault::KillGateway], ..Setup::of(seed) };
        Some((setup.clone(), ran(&setup))).filter(|(_, report)| !report.violations.is_empty())
    });
    let (setup, report) = failing.expect("one of them loses a write that matters");
    let before = report.struck.len();
    let shrunk = shrink(&setup, report, Duration::from_secs(20)).expect("a runtime can be built");
    assert!(!shrunk.report.violations.is_empty() && shrunk.report.struck.len() <= before);
    assert!(timeline(&shrunk.report).contains("a replica takes over"), "{}", timeline(&shrunk.report));
}

/// For continuous integration: each time others.
#[test]
#[ignore = "takes a minute; `cargo xtask test` runs it"]
fn a_minute_of_seeds_that_nobody_has_seen() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock that is right");
    let first = now.as_secs() * 1_000;
    println!("seeds from {first}");
    let (begun, mut operations) = (Instant::now(), 0);
    for seed in first.. {
        operations += passes(&Setup { operations: 300, ..Setup::of(seed) }).counts.operations;
        if begun.elapsed() > Duration::from_secs(60) {
            println!("{} seeds, {operations} operations", seed - first + 1);
            return;
        }
    }
}
