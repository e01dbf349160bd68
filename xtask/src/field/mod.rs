//! `cargo xtask prove check`: `semel check` on third-party implementations, alone and behind the gateway; writes docs/field-report.md.
//!
//! - `peers.rs`: who, at which version, set up how;
//! - `run.rs`: installs and runs one of them;
//! - `results.rs`: what each run came to, which is kept;
//! - `report.rs`: the page.

mod peers;
mod report;
mod results;
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
const AT_ONCE: usize = 8;

/// Checks those that are named, or all of them.
pub(crate) fn run(names: &[String]) -> Outcome {
    tools::field()?;
    step::run("the binary", &mut step::cargo(["build", "-p", "semel-cli"]))?;
    let target = step::target().ok_or("this program does not know where it is")?;
    let postgres = Cluster::start(&["fsync = off"])?;
    let place = target.join("tools/field");
    // A copy: a build in the meantime must not change what is run.
    let semel = place.join("semel");
    let copied = fs::create_dir_all(&place).and_then(|()| fs::copy(target.join("debug/semel"), &semel));
    copied.map_err(|error| format!("{}: {error}", semel.display()))?;
    let stage =
        Stage { semel, packages: place.join("packages"), files: place.join("runs"), postgres: &postgres };
    let mut chosen: Vec<_> =
        PEERS.iter().filter(|peer| names.is_empty() || names.contains(&peer.id())).collect();
    if let Some(unknown) = names.iter().find(|name| PEERS.iter().all(|peer| peer.id() != **name)) {
        let known = PEERS.iter().map(peers::Peer::id).collect::<Vec<_>>().join(", ");
        return Err(format!("`{unknown}` is not one of {known}"));
    }
    // What takes longest begins first.
    chosen.sort_by_key(|peer| !peer.is_application);
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
                        println!("    {} {way}: {}", peer.id(), told(&report));
                    }
                }
            });
        }
    });
    // The page shows the last result of those that were not run now.
    let seen = PEERS.iter().map(|peer| Seen {
        peer,
        alone: results::last(&peer.id(), false),
        behind: results::last(&peer.id(), true),
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
