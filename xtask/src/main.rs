//! What the project does to itself: `cargo xtask test`, `cargo xtask prove model`, `cargo xtask bench store`.
//!
//! A program in place of shell scripts, so that a machine with Rust and git alone can run it.
#![allow(clippy::print_stdout, reason = "a tool for the terminal: what it prints is what it is for")]

mod bench;
mod book;
mod counts;
mod dynoxide;
mod executables;
mod field;
mod fuzz;
mod fuzz_results;
mod install;
mod links;
mod nats;
mod peers;
mod planted;
mod prove;
mod python;
mod referee;
mod screenshots;
mod sdks;
mod servers;
mod side_by_side;
mod step;
mod suite;
mod test;
mod tiers;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Test, prove and measure Semel.
#[derive(Parser)]
#[command(
    bin_name = "cargo xtask",
    after_help = "Start with `cargo xtask test`: if it passes, the tree is good."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that must pass before a change is good; edits nothing.
    ///
    /// In this order, stopping at the first that fails: formatting, clippy with warnings as errors, the engine's pure
    /// part without the standard library, all tests, the instructions that the pure parts take, the documentation's
    /// examples, the documentation itself, the links between the pages, and the book. CI runs exactly this.
    ///
    /// Other programs that the tests need are checked first. As root on Debian, missing ones are installed; anywhere else
    /// you are told what to install.
    ///
    /// With a crate, only its tests run, and servers start when one of them asks for it: `cargo xtask test semel-tower replay`.
    Test {
        /// Only the tests of this crate
        #[arg(value_name = "CRATE")]
        package: Option<String>,
        /// Of these, only the tests with this in their name
        name: Option<String>,
        /// Only tests that need no PostgreSQL, PgBouncer, NATS, RabbitMQ or Redis, of the crates that have such tests; semel-cli
        /// and the larger examples are left out
        #[arg(long, conflicts_with = "package")]
        quick: bool,
    },

    /// Build the book from docs/ and follow every link in it. mdBook is built into the target directory if it is missing.
    Book,

    /// Take the pictures of the console for README and book: docs/operating/console/*.png.
    Screenshots,

    /// Run a command with a private PostgreSQL and a PgBouncer in front of it, whose addresses it finds in its environment:
    /// `cargo xtask postgres cargo test -p semel-postgres`. Without a command, print the addresses and wait.
    Postgres {
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },

    /// Run a command with private servers of all kinds: PostgreSQL, a PgBouncer in front of it, NATS, Redis and RabbitMQ (which takes
    /// ten seconds to start): `cargo xtask servers cargo test -p semel-events --all-features`. promtool and other tools for the
    /// tests are provided too. Without a command, print the addresses and wait.
    Servers {
        /// The command.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },

    /// Run the proofs that take longer than a test may; without a subject, the campaign.
    Prove(prove::Prove),

    /// Maintain the planted bugs: patches in proof/planted.
    #[command(subcommand)]
    Planted(Planted),

    /// Count the instructions that the pure parts take, and fail where one exceeds its limit.
    Counts {
        /// Write the counts of this run as the new limits.
        #[arg(long)]
        write: bool,
    },

    /// Update the snapshots of the public APIs: crates/*/api.txt. A test compares them.
    Api,

    /// Measure. Results are ratios within one run, so they can be compared between machines.
    ///
    /// The report is in benches/: RESULTS.md for people, results.json for programs, plots/. A subject replaces only its own part.
    Bench(bench::Bench),
}

#[derive(Subcommand)]
enum Planted {
    /// Bring patches up to date with sources that have changed or moved under them: these, or all of them.
    Refresh {
        /// The bugs.
        names: Vec<String>,
    },
}

fn main() -> ExitCode {
    if let Some(compiled) = fuzz::as_compiler() {
        return compiled;
    }
    let outcome = match Cli::parse().command {
        Command::Test { quick: true, .. } => tiers::quick(),
        Command::Test { package: Some(package), name, .. } => tiers::of_crate(&package, name.as_deref()),
        Command::Test { .. } => test::run(),
        Command::Book => book::run(),
        Command::Screenshots => screenshots::run(),
        Command::Postgres { command } => servers::run_with_postgres(&command),
        Command::Servers { command } => servers::run_with_all(&command),
        Command::Prove(prove) => prove::run(&prove),
        Command::Planted(Planted::Refresh { names }) => planted::refresh(&names),
        Command::Counts { write } => counts::run(write),
        Command::Api => api(),
        Command::Bench(bench) => bench::run(&bench),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\n{}", step::in_red(&failure));
            ExitCode::FAILURE
        }
    }
}

/// The test that compares can write too.
fn api() -> step::Outcome {
    let mut test = step::cargo(["test", "--quiet", "-p", "xtask", "--test", "api"]);
    step::run("api", test.env("SEMEL_API_WRITE", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    fn bench(words: &[&str]) -> bench::Bench {
        match Cli::try_parse_from([&["xtask", "bench"], words].concat()).unwrap().command {
            Command::Bench(bench) => bench,
            _ => panic!("parsed as another command"),
        }
    }

    #[test]
    fn a_subject_passes_what_follows_it_on() {
        for (words, on_postgres) in [(&[][..], false), (&["--postgres"], true)] {
            let bench = bench(&[&["store"], words, &["--seconds", "3"]].concat());
            let Some(bench::Subject::Store(on)) = bench.subject else { panic!("parsed as another subject") };
            assert_eq!(on.postgres, on_postgres);
            assert_eq!(on.passed.arguments, ["--seconds", "3"]);
        }
    }

    fn prove(words: &[&str]) -> prove::Prove {
        match Cli::try_parse_from([&["xtask", "prove"], words].concat()).unwrap().command {
            Command::Prove(prove) => prove,
            _ => panic!("parsed as another command"),
        }
    }

    #[test]
    fn the_campaign_is_what_is_proved_if_nothing_is_named() {
        let unnamed = prove(&["--long"]);
        assert!(unnamed.subject.is_none() && unnamed.campaign.long);
        let named = prove(&["campaign", "--long", "--seed", "3"]);
        let Some(prove::Subject::Campaign { extent, arguments }) = named.subject else {
            panic!("parsed as another subject")
        };
        assert!(extent.long && !extent.requests_alone);
        assert_eq!(arguments, ["--seed", "3"]);
        assert!(matches!(prove(&["fuzz", "key"]).subject, Some(prove::Subject::Fuzz(_))));
    }

    #[test]
    fn everything_and_each_subject_can_be_quick() {
        assert!(bench(&["--quick"]).quick && bench(&["--quick"]).subject.is_none());
        for words in [
            &["--quick", "gateway"][..],
            &["gateway", "--quick"],
            &["gateway", "--quick", "--", "--rounds", "2"],
        ] {
            assert!(bench(words).quick, "{words:?}");
        }
        assert!(!bench(&[]).quick);
    }
}
