//! Whole runs: seeds that are kept, seeds that nobody has seen, and that a run is the same whenever it is repeated.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test fails by a panic, and says what it ran")]
#![allow(clippy::panic, reason = "a run that failed says what happened")]

use semel_simulator::{Fault, Report, Setup, again, run, shrink, timeline};
use std::collections::BTreeMap;
use std::process::Command;
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

/// Most of them short, as a difference grows from wherever it began; some long, with every fault as often as it may strike.
fn repeated() -> Vec<Setup> {
    let short = (1..=104).map(|seed| Setup { operations: 25, ..Setup::of(seed) });
    let long = (201..=205).map(|seed| Setup { operations: 120, density: Some(1.0), ..Setup::of(seed) });
    // Records that are held while all are rewritten: they are looked at again, in some order.
    let only = vec![Fault::Rekey, Fault::StoreLocked];
    let rekey = (301..=308).map(|seed| Setup {
        operations: 60,
        density: Some(1.0),
        only: only.clone(),
        ..Setup::of(seed)
    });
    short.chain(long).chain(rekey).collect()
}

#[test]
fn two_runs_of_one_seed_are_the_same_byte_by_byte() {
    let mut rewritten = 0;
    for setup in repeated() {
        let setup = Setup { keep_text: true, ..setup };
        let (first, second) = (ran(&setup), ran(&setup));
        assert!(first.text == second.text, "{}", again(&setup));
        assert_eq!(first.trace, second.trace);
        assert!(first.trace.1 > 100, "seed {}: {} lines", setup.seed, first.trace.1);
        rewritten += first.sometimes["a record is rewritten by another key"];
    }
    assert!(rewritten > 50, "{rewritten} records were rewritten");
}

/// What differs from one process to the next, such as the order of a hash map or an address, shows between processes alone.
#[test]
fn another_process_makes_the_same_runs() {
    let hashes = || -> String {
        repeated()
            .iter()
            .step_by(4)
            .map(|setup| {
                let (hash, lines) = ran(setup).trace;
                format!("{hash:016x} {lines}\n")
            })
            .collect()
    };
    const TOLD: &str = "SEMEL_SIMULATOR_HASHES";
    if let Ok(path) = std::env::var(TOLD) {
        std::fs::write(path, hashes()).expect("a file can be written");
        return;
    }
    let directory = std::env::temp_dir().join(format!("semel-simulator-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let path = directory.join("hashes");
    let mut other = Command::new(std::env::current_exe().expect("a test knows its program"));
    other.args(["--exact", "another_process_makes_the_same_runs"]).env(TOLD, &path);
    assert!(other.output().expect("a process can be started").status.success());
    let theirs = std::fs::read_to_string(&path).expect("it has told its hashes");
    let _ = std::fs::remove_dir_all(&directory);
    assert_eq!(hashes(), theirs);
}

#[test]
fn other_seeds_make_other_runs() {
    let hash = |seed| ran(&Setup { operations: 40, ..Setup::of(seed) }).trace;
    assert_ne!(hash(1), hash(2));
}

#[test]
fn every_fault_strikes_and_none_breaks_a_promise() {
    // So that there is doubt, and a second attempt.
    let doubt = [Fault::ProviderAfter, Fault::AnswerLost, Fault::ServiceNothing];
    let (mut effects, mut answers) = (0, 0);
    for fault in Fault::ALL.iter().filter(|fault| **fault != Fault::Failover) {
        let strikes = (1..20).any(|seed| {
            let only = [&doubt[..], &[*fault]].concat();
            let report = passes(&Setup { operations: 40, only, density: Some(1.0), ..Setup::of(seed) });
            effects += report.counts.effects;
            answers += report.answers.get("Paid").copied().unwrap_or(0);
            report.struck.iter().any(|(struck, _)| struck == fault)
        });
        assert!(strikes, "{} never strikes", fault.as_str());
    }
    assert!(effects > 500 && answers > 500, "{effects} effects, {answers} answers");
}

/// A promise about what never happens holds nothing.
#[test]
fn everything_that_can_happen_happens_in_some_run() {
    let policies = ["conflict", "accepted", "wait", "unknown", "resume", "rerun", "new", "refuse"];
    let works = ["service", "at most once", "deduplicated", "queryable", "transaction"];
    let of_all = ["Paid", "Declined", "NotStored", "Mismatch", "InProgress", "InvalidKey", "NoStore"];
    let each = policies.iter().chain(&works).flat_map(|of| of_all.map(|answer| format!("{of}: {answer}")));
    let some = [
        "conflict: Unknown",
        "accepted: Unknown",
        "wait: Unknown",
        "unknown: UnknownToFirst",
        "refuse: Expired",
        "refuse: Damaged",
        "new: Damaged",
        "service: ComeAgain",
        "service: NothingDone",
        "service: QuotaExceeded",
        "queryable: NothingDone",
    ];
    let wanted: Vec<String> = each.chain(some.map(str::to_owned)).collect();
    let mut seen: BTreeMap<String, u64> = wanted.into_iter().map(|sight| (sight, 0)).collect();
    for seed in 1..=200 {
        let report = passes(&Setup { operations: 100, density: Some(0.7), ..Setup::of(seed) });
        // What is counted where it happens is in it, as often as never.
        for (sight, count) in report.sometimes {
            *seen.entry(sight).or_default() += count;
        }
        assert!(!seen.keys().any(|sight| sight.ends_with("Undocumented") || sight == "new: Expired"));
        if seen.values().all(|count| *count > 0) {
            return;
        }
    }
    let never: Vec<_> = seen.iter().filter(|(_, count)| **count == 0).map(|(sight, _)| sight).collect();
    panic!("these never happened: {never:#?}");
}

#[test]
fn a_store_that_forgets_what_it_acknowledged_is_found_out_and_the_run_explains_itself() {
    let failing = (1..20).find_map(|seed| {
        let setup =
            Setup { operations: 100, only: vec![Fault::Failover, Fault::KillGateway], ..Setup::of(seed) };
        Some((setup.clone(), ran(&setup))).filter(|(_, report)| !report.violations.is_empty())
    });
    let (setup, report) = failing.expect("one of them loses a write that matters");
    let (before, promise) = (report.struck.len(), first_word(&report));
    let shrunk = shrink(&setup, report, Duration::from_secs(20)).expect("a runtime can be built");
    assert!(shrunk.report.struck.len() < before, "{before} faults, and none of them could be spared");
    assert_eq!(first_word(&shrunk.report), promise);
    let repeated = ran(&shrunk.setup);
    assert_eq!((repeated.trace, &repeated.violations), (shrunk.report.trace, &shrunk.report.violations));
    assert!(timeline(&shrunk.report).contains("a replica takes over"), "{}", timeline(&shrunk.report));
}

/// The promise that a run breaks first.
fn first_word(report: &Report) -> String {
    let first = report.violations.first().expect("a run that failed");
    first.split(' ').next().unwrap_or_default().to_owned()
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
