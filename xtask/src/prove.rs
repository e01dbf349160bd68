//! `cargo xtask prove`: what is proved at a larger bound than a test has time for.

use crate::executables::{self, Kind};
use crate::step::{self, Outcome};
use crate::{field, fuzz, planted, tools};
use clap::{Args, Subcommand};
use semel_testing::servers::{Host, Server};
use std::process::Command;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Prove {
    #[command(subcommand)]
    pub(crate) subject: Option<Subject>,
    #[command(flatten)]
    pub(crate) campaign: Extent,
}

/// How much of the campaign.
#[derive(Args)]
pub(crate) struct Extent {
    /// A million operations for each store, instead of 22,000 in all
    #[arg(long)]
    pub(crate) long: bool,
    /// Only requests; leave out events (the outbox delivers every event, the inbox applies it once)
    #[arg(long)]
    pub(crate) requests_alone: bool,
    /// Only events; with --long, 20 seeds
    #[arg(long, conflicts_with = "requests_alone")]
    pub(crate) events_alone: bool,
}

#[derive(Subcommand)]
pub(crate) enum Subject {
    /// Check the state machine that every store runs, in all orders of events, at the large bound.
    ///
    /// The same model runs at a small bound in `cargo xtask test`.
    Model {
        /// Passed on to the model checker.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run gateways, services, a worker, a provider and both databases as processes, inject faults into them (kills, cut
    /// networks, full disks, wrong clocks), and judge by the provider's ledger.
    ///
    /// A short one runs in `cargo xtask test`.
    Campaign {
        #[command(flatten)]
        extent: Extent,
        /// Passed on to the campaign: --seed, --store, --profile, --scene, --operations, --other-build, --report, …
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Fail over a PostgreSQL group of three under Patroni, beneath two gateways and clients that retry: kill, freeze, switch over, cut
    /// and lose standbys; judge by the service's ledger.
    ///
    /// Ten faults of each kind take about an hour. A failover by hand runs in `cargo xtask test`.
    Failover {
        /// Passed on: --rounds, --only, --clients, --operations, --asynchronous.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the production engine, layer and workers in one thread under virtual time, with faults that a seed draws.
    ///
    /// Without arguments: a minute of new seeds. A run that fails is reduced to its smallest form and explained.
    Simulate {
        /// Passed on to the simulator: --seed, --minutes, --total, --operations, --only, --density, --keep-going, --trace.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Fuzz everything that reads untrusted bytes, and compare it with a second implementation of the rules.
    ///
    /// The corpus, and some random mutations of it, run in `cargo xtask test`.
    Fuzz(fuzz::Arguments),
    /// Run `semel check` on third-party implementations, each alone and then behind the gateway; write docs/field-report.md.
    ///
    /// They come from PyPI and npm, at the versions in xtask/src/field/peers.rs; the services around them are in proof/check.
    Check {
        /// Only these; the page keeps the last results of the others
        names: Vec<String>,
    },
    /// Plant one bug after the other in a copy of the sources, and fail unless the checks that its patch names notice it; writes
    /// proof/PLANTED.md.
    ///
    /// The bugs are patches in proof/planted. `cargo xtask test` plants three of those that are quick to build, others every day.
    Planted {
        /// The tests alone, without the campaign
        #[arg(long)]
        quick: bool,
        /// The simulator alone, for the bugs that it has to notice: one program to build for each, and no servers
        #[arg(long, conflicts_with = "quick")]
        simulator: bool,
        /// These bugs; all of them if none is named
        names: Vec<String>,
    },
}

pub(crate) fn run(prove: &Prove) -> Outcome {
    let Some(subject) = &prove.subject else { return campaign(&prove.campaign, &[]) };
    match subject {
        Subject::Fuzz(arguments) => fuzz::run(arguments),
        Subject::Model { arguments } => step::run(
            "model at the large bound",
            step::cargo(["run", "--release", "-p", "semel-model", "--", "--large"]).args(arguments),
        ),
        Subject::Check { names } => field::run(names),
        Subject::Simulate { arguments } => simulate(arguments),
        Subject::Failover { arguments } => failover(arguments),
        Subject::Planted { simulator: true, names, .. } => planted::simulated(names),
        Subject::Planted { quick, names, .. } => planted::run(names, *quick),
        Subject::Campaign { extent, arguments } => campaign(extent, arguments),
    }
}

/// What synchronous replication has to survive, and then what asynchronous replication does not: the checker has to see that.
fn failover(arguments: &[String]) -> Outcome {
    tools::failover()?;
    println!("==> failover: build");
    let mut building = step::cargo(["build", "--release", "-p", "semel-cli", "-p", "semel-failover"]);
    let built = executables::build(&mut building, &step::root())?;
    let binary = |name: &str| {
        let found = built.iter().find(|built| built.kind == Kind::Binary && built.name == name);
        found.map(|found| found.path.clone()).ok_or_else(|| format!("cargo built no binary {name}"))
    };
    let (semel, failover) = (binary("semel")?, binary("semel-failover")?);
    step::run("failover", Command::new(&failover).arg("--semel").arg(&semel).args(arguments))?;
    if !arguments.is_empty() {
        return Ok(());
    }
    let few = ["--asynchronous", "--rounds", "3", "--operations", "0"];
    let mut asynchronous = Command::new(&failover);
    step::run("failover, asynchronous: losses are seen", asynchronous.arg("--semel").arg(&semel).args(few))
}

fn simulate(arguments: &[String]) -> Outcome {
    let mut simulator = step::cargo(["run", "--release", "-p", "semel-simulator", "--"]);
    let extents = ["--seed", "--minutes", "--total", "--help"];
    let has_extent =
        arguments.iter().any(|argument| extents.contains(&argument.split('=').next().unwrap_or_default()));
    let default = ["--minutes", "1"].into_iter().filter(|_| !has_extent);
    step::run("simulator", simulator.args(default).args(arguments))
}

/// Both halves: requests, and what is told of them.
fn campaign(extent: &Extent, arguments: &[String]) -> Outcome {
    // Long enough for every profile, and on every machine where it is long: a round for each.
    let (operations, round, rounds) =
        if extent.long { ("1000000", "5000", 20) } else { ("11000", "1000", 1) };
    if !extent.events_alone {
        let extent = ["--operations", operations, "--round", round, "--at-once", "2"].map(str::to_owned);
        requests(&[&extent[..], arguments].concat())?;
    }
    if extent.requests_alone { Ok(()) } else { telling(rounds) }
}

/// Builds what takes part, and runs it.
fn requests(arguments: &[String]) -> Outcome {
    tools::campaign()?;
    let parts = ["-p", "semel-cli", "-p", "semel-demo-provider", "-p", "semel-campaign"];
    let profile = ["--release", "--features", "semel-cli/fail-points"];
    step::run("campaign: build", step::cargo(["build"]).args(profile).args(parts))?;
    step::run("campaign", step::cargo(["run", "--release", "-p", "semel-campaign"]).arg("--").args(arguments))
}

/// Publishers, consumers and the broker between them are killed; every event is applied once.
fn telling(rounds: u32) -> Outcome {
    tools::databases()?;
    tools::nats()?;
    let host = Host::start()?;
    let settings = host.settings_of(&[Server::Postgres])?;
    for seed in 1..=rounds {
        let mut test = step::cargo(["test", "--release", "-p", "semel-events", "--test", "campaign"]);
        test.args(["--features", "postgres,sqlite,nats,rabbitmq", "--", "--nocapture"]);
        test.env("SEMEL_KILL_SEED", seed.to_string()).envs(settings.clone());
        step::run(&format!("outbox and inbox, seed {seed}"), &mut test)?;
    }
    Ok(())
}
