//! The parts of the measurements: which program, what it needs, and how it is called in the report.

use crate::step::{self, Outcome};
use crate::{peers, tools};
use std::process::Command;

/// A program that measures.
pub(super) struct Part {
    /// What it is called in the report.
    pub(super) title: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The file that it leaves in target/bench.
    leaves: &'static str,
    needs: &'static [Need],
    /// Arguments by which it is over soon.
    quick: &'static [&'static str],
}

/// What a part needs besides itself.
enum Need {
    Nginx,
    Postgres,
    Nats,
    Redis,
    /// The binary `semel`.
    Semel,
    /// Whom Semel is compared with.
    Peers,
}
use Need::{Nats, Nginx, Peers, Postgres, Redis, Semel};

const ON_POSTGRES: &[&str] = &["--postgres"];
const SHORT: &[&str] = &["--rounds", "1", "--seconds", "0.5"];
const ONE_SECOND: &[&str] = &["--rounds", "1", "--seconds", "1"];
const FEW_EVENTS: &[&str] = &["--rounds", "1", "--events", "2000"];
const FEW_KEYS: &[&str] = &["--most", "100000", "--rounds", "1", "--seconds", "1"];

/// All of them, in the order of the report.
#[rustfmt::skip]
pub(super) const PARTS: [Part; 13] = [
    Part { title: "store on SQLite", program: "store", arguments: &[], leaves: "store-sqlite", needs: &[], quick: SHORT },
    Part { title: "store on PostgreSQL", program: "store-postgres", arguments: &[], leaves: "store-postgres", needs: &[Postgres], quick: ONE_SECOND },
    Part { title: "layer on SQLite", program: "layer", arguments: &[], leaves: "layer-sqlite", needs: &[Nginx], quick: SHORT },
    Part { title: "layer on PostgreSQL", program: "layer", arguments: ON_POSTGRES, leaves: "layer-postgres", needs: &[Nginx, Postgres], quick: SHORT },
    Part { title: "gateway on SQLite", program: "gateway", arguments: &[], leaves: "gateway-sqlite", needs: &[Nginx, Semel], quick: SHORT },
    Part { title: "gateway on PostgreSQL", program: "gateway", arguments: ON_POSTGRES, leaves: "gateway-postgres", needs: &[Nginx, Postgres, Semel], quick: SHORT },
    Part { title: "reaper on SQLite", program: "reaper", arguments: &[], leaves: "reaper-sqlite", needs: &[Nginx, Semel], quick: SHORT },
    Part { title: "reaper on PostgreSQL", program: "reaper", arguments: ON_POSTGRES, leaves: "reaper-postgresql", needs: &[Nginx, Postgres, Semel], quick: SHORT },
    Part { title: "cache", program: "cache", arguments: &[], leaves: "cache", needs: &[Nginx, Postgres, Redis, Semel], quick: ONE_SECOND },
    Part { title: "outbox", program: "outbox", arguments: &[], leaves: "outbox", needs: &[Postgres, Nats], quick: FEW_EVENTS },
    Part { title: "peers", program: "peers", arguments: &[], leaves: "peers", needs: &[Semel, Peers], quick: &["--quick"] },
    Part { title: "growth on SQLite", program: "growth", arguments: &[], leaves: "growth-sqlite", needs: &[Nginx, Semel], quick: FEW_KEYS },
    Part { title: "growth on PostgreSQL", program: "growth", arguments: ON_POSTGRES, leaves: "growth-postgres", needs: &[Nginx, Postgres, Semel], quick: FEW_KEYS },
];

/// A program of the benchmarks, built as it is measured.
fn program(name: &str) -> Command {
    step::cargo(["run", "--release", "-p", "semel-benches", "--bin", name, "--"])
}

impl Part {
    pub(super) fn titled(title: &str) -> Result<&'static Self, String> {
        PARTS.iter().find(|part| part.title == title).ok_or_else(|| format!("nothing measures the {title}"))
    }

    /// Measures, and puts what came of it into the report.
    pub(super) fn run(&self, quick: bool, more: &[String]) -> Outcome {
        let mut told = Vec::new();
        for need in self.needs {
            match need {
                Nginx => tools::load()?,
                Postgres => tools::postgres()?,
                Nats => tools::nats()?,
                Redis => tools::redis()?,
                Semel => {
                    step::run("the binary", &mut step::cargo(["build", "--release", "-p", "semel-cli"]))?
                }
                Peers => told.extend(peers::provide_all()?),
            }
        }
        let mut measure = program(self.program);
        measure.args(self.arguments).args(told).args(if quick { self.quick } else { &[] }).args(more);
        step::run(self.title, &mut measure)?;
        report(quick, Some((self.title, self.leaves)))
    }
}

/// Puts the results of a part into the report, by its title and the file that it left; without one, rebuilds and prints the report.
pub(super) fn report(quick: bool, of: Option<(&str, &str)>) -> Outcome {
    let mut report = program("report");
    if let Some((title, leaves)) = of {
        report.arg("--part").arg(format!("{title}=target/bench/{leaves}.json"));
    }
    if quick {
        report.args(["--into", "target/bench/quick"]);
    }
    step::run("the report", &mut report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_has_a_part_for_each_store() {
        for what in ["store", "layer", "gateway", "reaper", "growth"] {
            for store in ["SQLite", "PostgreSQL"] {
                assert!(Part::titled(&format!("{what} on {store}")).is_ok(), "{what} on {store}");
            }
        }
        assert!(
            Part::titled("cache").is_ok() && Part::titled("outbox").is_ok() && Part::titled("peers").is_ok()
        );
    }
}
