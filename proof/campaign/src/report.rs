//! What a person sees of a campaign.
#![allow(clippy::print_stdout, reason = "a report is printed")]

use crate::faults::Fault;
use crate::processes::StoreKind;
use crate::run::{Campaign, Result};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// The share of operations that have to come to a definite answer while things go wrong, or the campaign says nothing.
const DEFINITE: f64 = 0.7;

pub(crate) fn progress(done: usize, of: usize, elapsed: Duration) {
    if std::io::stderr().is_terminal() && done.is_multiple_of(50) {
        eprint!("\r\x1b[2K{done} of {of} operations, {:.0} s ", elapsed.as_secs_f64());
        let _ = std::io::stderr().flush();
    }
}

/// The log of faults: with the seed, what there is to know of what was done.
pub(crate) fn fault(at: Duration, fault: Fault, gateway: usize) {
    if std::env::var_os("SEMEL_CAMPAIGN_FAULTS").is_some() {
        println!("{:8.3} s  {fault} ({gateway})", at.as_secs_f64());
    }
}

pub(crate) fn healing(elapsed: Duration) {
    if std::io::stderr().is_terminal() {
        eprintln!("\r\x1b[2Kfaults end after {:.0} s; everything is asked for again", elapsed.as_secs_f64());
    }
}

/// Prints what came out. Whether it was good.
pub(crate) fn result(campaign: &Campaign, result: &Result) -> bool {
    let Result { judged, faults, definite, took } = result;
    let requests: usize = judged.answers.values().sum();
    let share = *definite as f64 / f64::from(campaign.operations.max(1));
    println!(
        "{}, seed {}: {} operations, {requests} requests ({} replays), {} faults, {} effects, {:.0} s",
        campaign.store.name(),
        campaign.seed,
        campaign.operations,
        judged.replays,
        faults.values().sum::<u32>(),
        judged.effects,
        took.as_secs_f64()
    );
    for (fault, count) in faults {
        println!("  {count:>6}  {fault}");
    }
    for (meaning, count) in &judged.answers {
        println!(
            "  {count:>6}  {}",
            meaning.map_or("no answer".to_owned(), |meaning| format!("{meaning:?}"))
        );
    }
    println!("  {:.1} % had a definite answer while things went wrong", share * 100.0);
    for violation in judged.violations.iter().take(50) {
        println!("  VIOLATION {violation}");
    }
    println!("  {} violations", judged.violations.len());
    if share < DEFINITE {
        println!("  does not count: fewer than {:.0} % had a definite answer", DEFINITE * 100.0);
    }
    judged.violations.is_empty() && share >= DEFINITE
}

pub(crate) fn beginning(store: StoreKind, seed: u64, directory: &std::path::Path) {
    println!("{}, seed {seed}; logs of the processes: {}", store.name(), directory.display());
}
