//! `cargo xtask prove planted`: tests that cannot fail prove nothing.
//!
//! The crates hold mistakes that can be switched on (`crates/semel/src/planted`). Each is switched on alone, and the tests that
//! `cases.rs` names for it have to fail: having passed without it. Where a running system can show the mistake, the campaign that `pairs.rs` has
//! for it has to notice it too, and it is noted after how many operations it did.

#[path = "../../../crates/semel/src/planted/bug.rs"]
#[allow(unreachable_pub, reason = "the same file is a public module of the engine")]
mod bug;
mod built;
mod cases;
mod check;
mod pairs;
mod side_by_side;
mod table;

use crate::step::{self, Outcome};
use crate::tools;
use bug::Bug;
use built::{Built, Selection};
use cases::{Test, checks};
use check::{BRIEF_PATIENCE, Noticed, PATIENCE, Runner};
use pairs::pair;
use semel_testing::servers::{Host, Server};
use side_by_side::side_by_side;
use std::time::Duration;

/// What became of one bug.
struct Verdict {
    bug: Bug,
    /// The tests that failed, as each should, and how long they took; the others.
    caught: Vec<(&'static Test, Duration)>,
    missed: Vec<&'static Test>,
    /// What the campaign says, where it was tried.
    campaign: Option<Noticed>,
}

impl Verdict {
    fn of(bug: Bug) -> Self {
        Self { bug, caught: Vec::new(), missed: Vec::new(), campaign: None }
    }
}

/// Shows that each of these bugs, or of all, is caught. `quick`: by the tests alone, and nothing is written down.
pub(crate) fn run(names: &[String], quick: bool) -> Outcome {
    let bugs = named(names)?;
    tools::databases()?;
    tools::planted()?;
    let mut tests: Vec<&'static Test> = bugs.iter().flat_map(|bug| checks(*bug).tests).collect();
    tests.sort();
    tests.dedup();
    let built = Built::of(&Selection::Alone(&tests))?;
    let host = Host::start()?;
    let settings = host.settings_of(&[Server::Postgres, Server::PgBouncer])?;
    let mut runner = Runner::new(built, settings, PATIENCE);
    step::timed("planted: none", "every test passes while no bug is planted", || {
        side_by_side(&tests, |test| runner.passes(test)).map(drop)
    })?;
    let mut verdicts = Vec::new();
    step::timed("planted: tests", "every test fails that should notice", || {
        verdicts = tried(&runner, &bugs, |bug| checks(bug).tests)?;
        verdicts.iter().for_each(|verdict| println!("{}", table::line(verdict)));
        judge(&verdicts)
    })?;
    if quick {
        return Ok(());
    }
    step::timed("planted: campaign", "what a running system shows", || {
        for verdict in &mut verdicts {
            if let Some(pair) = pair(verdict.bug) {
                let noticed = runner.campaign(verdict.bug, &pair)?;
                println!("    {}: {}", verdict.bug.name(), table::told(&noticed));
                verdict.campaign = Some(noticed);
            }
        }
        Ok(())
    })?;
    // Also where something was missed: the page says what.
    table::write(&verdicts)?;
    noticed(&verdicts)
}

/// Whether every campaign noticed what it has to.
fn noticed(verdicts: &[Verdict]) -> Outcome {
    let missed = verdicts.iter().filter_map(|verdict| {
        let (pair, campaign) = (pair(verdict.bug)?, verdict.campaign.as_ref()?);
        if matches!(campaign, Noticed::After { .. }) {
            return None;
        }
        Some(format!("{}: {} ({pair})", verdict.bug.name(), table::told(campaign)))
    });
    let missed: Vec<_> = missed.collect();
    if missed.is_empty() {
        return Ok(());
    }
    let missed = missed.join("\n");
    Err(format!(
        "the campaign does not notice:\n{missed}\nGive it a rule that does, or another pair in xtask/src/planted/pairs.rs"
    ))
}

/// The same as part of the tests, which have just passed and built everything: the first test of each bug alone.
pub(crate) fn quickly(settings: Vec<(&'static str, String)>) -> Outcome {
    let runner = Runner::new(Built::of(&Selection::WithTheTests)?, settings, BRIEF_PATIENCE);
    let verdicts = tried(&runner, Bug::ALL, |bug| checks(bug).tests.get(..1).unwrap_or_default())?;
    judge(&verdicts)?;
    println!("    {} bugs, each caught", verdicts.len());
    Ok(())
}

/// What these tests say of each bug.
fn tried(
    runner: &Runner,
    bugs: &[Bug],
    tests_of: impl Fn(Bug) -> &'static [Test],
) -> Result<Vec<Verdict>, String> {
    let pairs: Vec<(Bug, &'static Test)> =
        bugs.iter().flat_map(|bug| tests_of(*bug).iter().map(|test| (*bug, test))).collect();
    let failed = side_by_side(&pairs, |(bug, test)| runner.fails(test, *bug))?;
    let mut verdicts: Vec<Verdict> = bugs.iter().map(|bug| Verdict::of(*bug)).collect();
    for ((bug, test), failed) in pairs.into_iter().zip(failed) {
        let Some(verdict) = verdicts.iter_mut().find(|verdict| verdict.bug == bug) else { continue };
        match failed {
            Some(took) => verdict.caught.push((test, took)),
            None => verdict.missed.push(test),
        }
    }
    Ok(verdicts)
}

fn named(names: &[String]) -> Result<Vec<Bug>, String> {
    if names.is_empty() {
        return Ok(Bug::ALL.to_vec());
    }
    let all = || Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", ");
    let find = |name: &String| {
        Bug::named(name).ok_or_else(|| format!("there is no bug {name}; there are {}", all()))
    };
    names.iter().map(find).collect()
}

fn judge(verdicts: &[Verdict]) -> Outcome {
    let missed = |verdict: &Verdict| {
        let bug = verdict.bug.name();
        verdict.missed.iter().map(|test| format!("{bug}: {test} passes all the same")).collect::<Vec<_>>()
    };
    let missed: Vec<_> = verdicts.iter().flat_map(missed).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let missed = missed.join("\n");
    Err(format!("{missed}\nWrite a test that notices, and name it in xtask/src/planted/cases.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_bug_has_a_test_that_is_there() {
        for bug in Bug::ALL {
            assert!(!checks(*bug).tests.is_empty(), "{}", bug.name());
            for test in checks(*bug).tests {
                assert!(test.is_there(), "{}: there is no {} in {}", bug.name(), test.name, test.place);
            }
        }
    }

    #[test]
    fn a_bug_that_its_campaign_does_not_notice_is_a_failure() {
        let verdict =
            |campaign| Verdict { campaign: Some(campaign), ..Verdict::of(Bug::AcknowledgedBeforeCommit) };
        let seen = Noticed::After { operations: 400, invariants: vec!["I3".into()], took: Duration::ZERO };
        assert_eq!(noticed(&[verdict(seen), Verdict::of(Bug::CookieKept)]), Ok(()));
        for missed in [Noticed::NotWithin(1_600), Noticed::NoVerdict(400)] {
            let told = noticed(&[verdict(missed)]).unwrap_err();
            assert!(
                told.contains("acknowledged-before-commit") && told.contains("kill-gateway, 1 in 15"),
                "{told}"
            );
        }
    }

    #[test]
    fn no_package_switches_planted_bugs_on() {
        for directory in ["crates", "examples", "examples/payments", "proof", "."] {
            for entry in fs::read_dir(step::root().join(directory)).unwrap() {
                let Ok(manifest) = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")) else {
                    continue;
                };
                let mentions = manifest.matches("planted-bugs").count();
                let declares = manifest.starts_with("[package]\nname = \"semel\"\n");
                assert_eq!(mentions, usize::from(declares), "{manifest}");
            }
        }
    }

    #[test]
    fn a_name_that_is_none_is_told_with_those_that_are() {
        let told = named(&["lease-stolem".to_owned()]).unwrap_err();
        assert!(told.contains("lease-stolem") && told.contains("lease-stolen"), "{told}");
    }
}
