//! Semel against its peers: the same job, on the same machine, in the same run, durable on both sides.
//!
//! Every round asks all of them in every way, one after the other: new keys and replays, over 1, 8 and 64 connections, as fast as it
//! goes. Then each pair is asked at a rate that both can serve. A peer that is not there, or fails, is reported as such, and the rest
//! goes on.
#![allow(clippy::print_stdout, reason = "a report is printed")]

mod behaviour;
mod contender;
mod figures;
mod paced;
mod processor;
mod running;
mod stage;
mod start;
mod wrk;

use behaviour::Behaviour;
use clap::Parser;
use contender::{Contender, Who};
use figures::{Figures, PAIRS, cells};
use semel_benches::load::Load;
use semel_benches::{progress, report};
use stage::Stage;
use start::Programs;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrk::{Kind, Measured};

#[derive(Parser)]
#[command(about = "Requests to Semel and to its peers, new and replayed")]
struct Arguments {
    #[command(flatten)]
    programs: Programs,
    /// Rounds; each measures everything once. Before the first, everything is warmed up.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many whole seconds each is measured in a round.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// One round of a second, to see that all of it works. The figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Where the files of all stores go: on a real disk.
    #[arg(long, default_value = "target/bench")]
    directory: PathBuf,
    /// What could not be had, as `Restate: why`: told in the report.
    #[arg(long)]
    missing: Vec<String>,
}

/// How often the two of a pair take turns in a round at equal load. A disk that pauses for 40 ms makes the slowest hundredth of two seconds,
/// whoever is measured meanwhile; in ten seconds of each it takes more than one pause.
const TURNS: usize = 5;

/// Those who take part, what is known of them, and why others do not.
struct Field {
    contenders: BTreeMap<Who, Contender>,
    behaviour: BTreeMap<Who, Behaviour>,
    absent: Vec<(Who, String)>,
}

impl Field {
    fn enter(programs: &Programs, stage: &Stage) -> Self {
        let mut field = Self { contenders: BTreeMap::new(), behaviour: BTreeMap::new(), absent: Vec::new() };
        for who in Who::ALL {
            progress(&format!("starting {}", who.name()));
            let started = programs.start(who, stage).and_then(|mut contender| {
                let behaviour = behaviour::try_retries(&mut contender, &stage.gate)?;
                Ok((contender, behaviour))
            });
            match started {
                Ok((contender, behaviour)) => {
                    field.contenders.insert(who, contender);
                    field.behaviour.insert(who, behaviour);
                }
                Err(error) => field.absent.push((who, error.to_string())),
            }
        }
        field
    }

    /// Removes a contender that failed: half of its measurements would be no result.
    fn leave(&mut self, who: Who, why: &dyn std::fmt::Display) {
        self.contenders.remove(&who);
        self.absent.push((who, why.to_string()));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::parse();
    if arguments.quick {
        (arguments.rounds, arguments.seconds) = (1, 1);
    }
    std::fs::create_dir_all(&arguments.directory)?;
    let stage = Stage::set(&arguments.directory.canonicalize()?)?;
    let mut field = Field::enter(&arguments.programs, &stage);
    let mut figures = Figures::default();
    at_full_speed(&arguments, &stage, &mut field, &mut figures)?;
    at_equal_load(&arguments, &mut field, &mut figures);
    progress("");
    print_raw(&figures);
    print_field(&field, &arguments.missing);
    report(&figures.comparisons(), Path::new("target/bench/peers.json"))?;
    Ok(())
}

fn at_full_speed(
    arguments: &Arguments,
    stage: &Stage,
    field: &mut Field,
    figures: &mut Figures,
) -> Result<(), Box<dyn Error>> {
    let span = Duration::from_secs(arguments.seconds);
    let load = |(_, connections)| Ok((connections, Load::new(stage.directory.path(), connections, span)?));
    let loads: BTreeMap<usize, Load> = cells().map(load).collect::<std::io::Result<_>>()?;
    let warm_up = usize::from(!arguments.quick);
    for round in 0..arguments.rounds + warm_up {
        for cell @ (kind, connections) in cells() {
            let load = &loads[&connections];
            progress(&format!(
                "{} over {connections} connections, round {} of {}{}",
                kind.name(),
                round + 1,
                arguments.rounds + warm_up,
                if round < warm_up { " (a warm-up)" } else { "" }
            ));
            for who in Who::ALL {
                let Some(contender) = field.contenders.get(&who) else { continue };
                match wrk::run(load, contender, kind) {
                    Ok(measured) if round >= warm_up => figures.add(who, cell, measured),
                    Ok(_) => {}
                    Err(error) => field.leave(who, &error),
                }
            }
        }
    }
    Ok(())
}

fn at_equal_load(arguments: &Arguments, field: &mut Field, figures: &mut Figures) {
    for round in 0..arguments.rounds {
        for pair in &PAIRS {
            let (Some(ours), Some(other)) =
                (field.contenders.get(&pair.ours), field.contenders.get(&pair.other))
            else {
                continue;
            };
            let Some(rate) = figures.easy_rate(pair) else { continue };
            let names = (pair.ours.name(), pair.other.name());
            progress(&format!("{} and {} at {rate} requests/s, round {}", names.0, names.1, round + 1));
            let turns = if arguments.quick { 1 } else { TURNS };
            let both = [(pair.ours, ours), (pair.other, other)];
            match paced::in_turns(both, rate, Duration::from_secs(arguments.seconds), turns) {
                Ok([ours, other]) => figures.add_paced(pair, rate, (ours, other)),
                Err((who, error)) => field.leave(who, &error),
            }
        }
    }
}

fn print_raw(figures: &Figures) {
    let width = Who::ALL.map(|who| who.name().len()).into_iter().max().unwrap_or(0);
    for kind in [Kind::New, Kind::Replayed] {
        println!("\n{}: requests/s, p50 and p99 in us, processor time in us a request", kind.name());
        for who in Who::ALL {
            print!("{:width$}", who.name());
            for cell in cells().filter(|cell| cell.0 == kind) {
                match figures.of(who, cell) {
                    Some(Measured { rate, median, p99, processor }) => {
                        print!("  {:>3}: {rate:>7.0} {median:>7.0} {p99:>7.0} {processor:>6.0}", cell.1);
                    }
                    None => print!("  {:>3}: {:>30}", cell.1, "-"),
                }
            }
            println!();
        }
    }
    println!("\nequal loads, in requests/s");
    for (ours, other, rate) in figures.rates() {
        println!("{} and {}: {rate}", ours.name(), other.name());
    }
}

fn print_field(field: &Field, missing: &[String]) {
    println!();
    for who in Who::ALL {
        if let Some(behaviour) = field.behaviour.get(&who) {
            println!("{}: {behaviour}; {}", who.name(), who.note());
        }
    }
    for (who, why) in &field.absent {
        println!("{}: NOT MEASURED: {why}", who.name());
    }
    for why in missing {
        println!("could not be had: {why}");
    }
}
