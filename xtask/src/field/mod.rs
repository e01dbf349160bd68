//! `cargo xtask prove check`: `semel check` on third-party implementations, alone and behind the gateway; writes docs/field-report.md.
//!
//! - `peers.rs`: who, at which version, set up how;
//! - `run.rs`: installs and runs one of them;
//! - `report.rs`: the page.

mod peers;
mod report;
mod run;

use crate::step::{self, Outcome};
use crate::tools;
use peers::PEERS;
use report::Seen;
use run::Stage;
use semel_testing::servers::Cluster;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

/// So many at once: most of the time is waiting for locks to lapse.
const AT_ONCE: usize = 5;

/// Checks those that are named, or all of them.
pub(crate) fn run(names: &[String]) -> Outcome {
    tools::field()?;
    step::run("the binary", &mut step::cargo(["build", "-p", "semel-cli"]))?;
    let target = step::target().ok_or("this program does not know where it is")?;
    let postgres = Cluster::start(&["fsync = off"])?;
    let place = target.join("tools/field");
    let stage = Stage {
        semel: target.join("debug/semel"),
        packages: place.join("packages"),
        files: place.join("runs"),
        postgres: &postgres,
    };
    let chosen: Vec<_> =
        PEERS.iter().filter(|peer| names.is_empty() || names.iter().any(|name| name == peer.name)).collect();
    for peer in &chosen {
        run::install(&stage, peer)?;
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(peer) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for (way, behind) in [("alone", false), ("behind Semel", true)] {
                        let report = run::check(&stage, peer, behind);
                        failed.fetch_add(usize::from(report.is_err()), Ordering::Relaxed);
                        println!("    {} {way}: {}", peer.name, told(&report));
                    }
                }
            });
        }
    });
    // Those that did not run now are told of as they came out the last time.
    let seen = PEERS.iter().map(|peer| Seen {
        peer,
        alone: run::last(&stage, peer, false),
        behind: run::last(&stage, peer, true),
    });
    let page = step::root().join("docs/field-report.md");
    let text = report::render(&seen.collect::<Vec<_>>());
    fs::write(&page, text).map_err(|error| format!("{}: {error}", page.display()))?;
    match failed.into_inner() {
        0 => Ok(()),
        failed => Err(format!("{failed} runs did not come to a report: see above")),
    }
}

fn told(report: &Result<serde_json::Value, String>) -> String {
    match report {
        Ok(report) => format!("exit status {}", report["exit_status"]),
        Err(why) => why.clone(),
    }
}
