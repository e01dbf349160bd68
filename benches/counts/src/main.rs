//! How many instructions the pure parts take, counted by callgrind and held to what they took before.
//!
//! Time is noise on a shared machine; instructions are not. `cargo xtask counts` builds this with optimisation, runs each part under
//! callgrind, and fails where one takes more than its limit. `cargo xtask counts --write` updates the limits.
#![allow(clippy::print_stdout, reason = "a tool for the terminal: what it prints is what it is for")]

mod callgrind;
mod known;
mod parts;

use known::{Known, Verdict};
use parts::Part;
use std::process::ExitCode;

/// What the limits hold for: other processors have other instructions.
const MEASURED_ON: (&str, &str) = ("linux", "x86_64");

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        [] => check(),
        ["--write"] => write(),
        ["run", name, times] => run(name, times),
        _ => Err("nothing, `--write`, or `run PART TIMES` is understood".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// What callgrind looks at: one part, so many times.
fn run(name: &str, times: &str) -> Result<(), String> {
    let part = parts::ALL.iter().find(|part| part.name == name).ok_or("there is no such part")?;
    let times = times.parse().map_err(|_| "the second is a number")?;
    (part.run)(times);
    Ok(())
}

/// Counts every part and compares it with what is known of it.
fn check() -> Result<(), String> {
    if (std::env::consts::OS, std::env::consts::ARCH) != MEASURED_ON {
        let (os, arch) = MEASURED_ON;
        println!(
            "    SKIPPED: the limits are of {os} on {arch}, and other processors have other instructions"
        );
        return Ok(());
    }
    let known = Known::read()?;
    let mut failures = Vec::new();
    for part in parts::ALL {
        let count = callgrind::instructions(part)?;
        let verdict = known.verdict(part.name, count)?;
        println!("    {:<28} {count:>12}  {verdict}", part.name);
        if let Verdict::TooMany { limit } = verdict {
            failures.push(format!("{}: {count} instructions, and at most {limit} are allowed", part.name));
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}.\nFind out what became dearer (callgrind_annotate shows where the instructions go). If it is worth its price, \
         `cargo xtask counts --write` updates the limits in {}; say in the commit what it buys.",
        failures.join("\n"),
        known::FILE,
    ))
}

/// Counts every part and makes that the new limit.
fn write() -> Result<(), String> {
    let count = |part: &Part| Ok((part.name, callgrind::instructions(part)?));
    Known::write(&parts::ALL.iter().map(count).collect::<Result<Vec<_>, String>>()?)
}
