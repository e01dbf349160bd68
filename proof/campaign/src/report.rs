//! What a person sees of a campaign once it is over.
#![allow(clippy::print_stdout, reason = "a report is printed")]

use crate::armed;
use crate::pairs::{State, impossible};
use crate::run::Round;
use crate::tally::{Row, Tally};
use std::fmt::Write as _;
use std::path::Path;

/// The share of operations that have to come to a definite answer while things go wrong, or the campaign says nothing.
const DEFINITE: f64 = 0.7;

/// A campaign with as many faults as this is long enough to have hit every pair of fault and state.
const LONG: u64 = 1_000;

/// One round that is over.
pub(crate) fn round(round: &Round, result: &crate::run::Result, directory: &Path) {
    let faults: u32 = result.done.counts.values().sum();
    println!(
        "{}, seed {} ({}, {}): {} operations, {faults} faults, {:.0} % definite, {} violations, {:.0} s",
        round.store.name(),
        round.seed,
        round.profile,
        round.scene,
        round.operations,
        100.0 * result.definite as f64 / f64::from(round.operations.max(1)),
        result.judged.violations.len(),
        result.took.as_secs_f64()
    );
    for violation in result.judged.violations.iter().take(10) {
        println!("  VIOLATION {violation}");
    }
    if !result.judged.violations.is_empty() {
        println!("  the logs of the processes: {}", directory.display());
    }
}

/// Why a campaign does not count, if it does not.
pub(crate) fn faults_of(tally: &Tally) -> Vec<String> {
    let mut why = Vec::new();
    if tally.violations > 0 {
        why.push(format!("{} violations", tally.violations));
    }
    if tally.definite_share() < DEFINITE {
        why.push(format!("fewer than {:.0} % had a definite answer", DEFINITE * 100.0));
    }
    if tally.fault_count() >= LONG {
        let missed = tally.pairs.missed(tally.possible_faults().into_iter());
        why.extend(
            missed.iter().map(|(fault, state)| format!("nothing was {state} when this struck: {fault}")),
        );
    }
    why
}

/// The report, in Markdown.
pub(crate) fn markdown(tally: &Tally) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write(&mut text, tally);
    text
}

fn write(text: &mut String, tally: &Tally) -> std::fmt::Result {
    let rounds: u32 = tally.rounds.values().sum();
    writeln!(text, "### {}\n", tally.store.name())?;
    writeln!(
        text,
        "{} operations in {rounds} rounds (seeds {} to {}), {} requests of which {} were replays, {} faults, {} effects, {:.0} minutes.",
        tally.operations,
        tally.first_seed,
        tally.first_seed + u64::from(rounds.max(1)) - 1,
        tally.requests(),
        tally.replays,
        tally.fault_count(),
        tally.effects,
        tally.took.as_secs_f64() / 60.0
    )?;
    let scenes: Vec<String> = tally.rounds.iter().map(|(scene, count)| format!("{count} {scene}")).collect();
    writeln!(text, "Rounds: {}.", scenes.join(", "))?;
    writeln!(
        text,
        "**{} violations.** {:.1} % had a definite answer while things went wrong.",
        tally.violations,
        tally.definite_share() * 100.0
    )?;
    writeln!(
        text,
        "{} stored answers damaged, {} encryption keys replaced. Fail points: {} of {} kinds armed, {} places went off.\n",
        tally.damaged,
        tally.keys_taken_away,
        tally.armed.len(),
        armed::ALL,
        tally.reached.len()
    )?;
    for (rule, count) in &tally.by_rule {
        writeln!(text, "- {count} violations of {rule}")?;
    }
    for (seed, violation) in &tally.told {
        writeln!(text, "- VIOLATION (seed {seed}) {violation}")?;
    }
    profiles(text, tally)?;
    pairs(text, tally)?;
    writeln!(text, "\n| answer | times |\n|---|---|")?;
    for (meaning, count) in &tally.answers {
        let meaning = meaning
            .map_or("none: no connection, cut off, or hung up".to_owned(), |meaning| format!("{meaning:?}"));
        writeln!(text, "| {meaning} | {count} |")?;
    }
    Ok(())
}

/// A row for each profile. A start is a service that began to act: more of them than effects are attempts that were proved to have done nothing.
fn profiles(text: &mut String, tally: &Tally) -> std::fmt::Result {
    writeln!(
        text,
        "| profile | what it allows | rounds | operations | requests | faults | starts | effects | operator settled / refused | violations | minutes |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|---|---|")?;
    for (profile, row) in &tally.profiles {
        let Row { rounds, operations, requests, faults, starts, effects, settled, refused, violations, took } =
            row;
        writeln!(
            text,
            "| {profile} | {} | {rounds} | {operations} | {requests} | {faults} | {starts} | {effects} | {settled} / {refused} | {violations} | {:.1} |",
            profile.rule(),
            took.as_secs_f64() / 60.0
        )?;
    }
    writeln!(text)
}

/// How often each fault struck, and while how many of its strikes there were records in each state.
fn pairs(text: &mut String, tally: &Tally) -> std::fmt::Result {
    let states: Vec<&str> = State::ALL.iter().map(|state| state.name()).collect();
    writeln!(text, "| fault | times | {} |", states.join(" | "))?;
    writeln!(text, "|---|---|{}", "---|".repeat(states.len()))?;
    let mut reasons = std::collections::BTreeSet::new();
    for fault in tally.possible_faults() {
        let times = tally.faults.get(&fault).copied().unwrap_or_default();
        let cells = State::ALL.map(|state| match impossible(fault, state) {
            Some(why) => {
                reasons.insert(format!("{fault}: {why}"));
                "–".to_owned()
            }
            None => tally.pairs.hit(fault, state).to_string(),
        });
        writeln!(text, "| {fault} | {times} | {} |", cells.join(" | "))?;
    }
    for reason in reasons {
        writeln!(text, "\n– cannot be: {reason}.")?;
    }
    Ok(())
}
