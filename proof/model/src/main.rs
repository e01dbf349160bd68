//! Checks the model at the large bound (`--large`) or the small one, and says what came out.

use semel_model::{Config, check};
use std::process::ExitCode;

#[allow(clippy::print_stdout, reason = "a command that reports to whoever started it")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let large = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["--small"] => false,
        ["--large"] => true,
        _ => {
            println!("usage: semel-model [--small | --large]");
            return ExitCode::from(2);
        }
    };
    let configs = if large { Config::large() } else { Config::small() };
    let mut good = true;
    for config in configs {
        let name = config.name;
        println!("{name}: {:?}", config.bounds);
        let outcome = check(config, None, |states, depth| println!("  {states} states, depth {depth} …"));
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
        good &= outcome.is_good();
    }
    println!("{}", if good { "everything holds" } else { "something does not hold" });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
