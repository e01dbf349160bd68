//! Checks the model at the large bound (`--large`, with `--clock` that of the clock alone) or the small one, and says what came out.
#![allow(clippy::print_stdout, reason = "a command that reports to whoever started it")]

use semel_model::{ClockBounds, Config, Outcome, check, check_clock};
use std::fmt::Debug;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let (large, clock_alone) = match arguments[..] {
        [] | ["--small"] => (false, false),
        ["--large"] => (true, false),
        ["--large", "--clock"] => (true, true),
        _ => {
            println!("usage: semel-model [--small | --large [--clock]]");
            return ExitCode::from(2);
        }
    };
    let (configs, clocks) = match large {
        true => (Config::large(), ClockBounds::LARGE),
        false => (Config::small(), ClockBounds::SMALL),
    };
    let mut good = true;
    for config in configs.into_iter().filter(|_| !clock_alone) {
        println!("{}: {:?}", config.name, config.bounds);
        good &= told(&check(config, None, progress));
    }
    for &bounds in clocks {
        println!("clock: {bounds:?}");
        good &= told(&check_clock(bounds, None, progress));
    }
    println!("{}", if good { "everything holds" } else { "something does not hold" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn progress(states: usize, depth: usize) {
    println!("  {states} states, depth {depth} …");
}

fn told<A: Debug>(outcome: &Outcome<A>) -> bool {
    let (always, sometimes) = outcome.properties;
    println!(
        "  {} states, {} steps, depth {}; {always} properties always, {sometimes} sometimes; settles within {} steps; {:.1} s",
        outcome.states,
        outcome.steps,
        outcome.depth,
        outcome.longest_way,
        outcome.took.as_secs_f64(),
    );
    for missing in &outcome.missing {
        println!("  never reached: {missing}");
    }
    for (property, path) in &outcome.broken {
        println!("  broken: {property}");
        for (step, action) in path.iter().enumerate() {
            println!("    {:>3} {action:?}", step + 1);
        }
    }
    outcome.is_good()
}
