//! `cargo xtask prove planted`: tests that cannot fail prove nothing.
//!
//! A planted bug is a patch in `proof/planted`: a mistake of the kind that idempotency layers are made with. Each is applied alone to a
//! copy of the sources, and the tests that its header names have to fail, having passed without it. Where a running system can show the
//! mistake, the campaign that the header names has to notice it too, and it is noted after how many operations it did.

mod built;
mod campaign;
mod check;
mod of_the_day;
mod patch;
mod refresh;
mod simulator;
mod table;
mod tree;

use crate::side_by_side::side_by_side;
use crate::step::{self, Outcome};
use crate::tools;
use built::Built;
use campaign::Campaign;
use check::{Noticed, Runner};
use patch::{Patch, Test};
pub(crate) use refresh::refresh;
use semel_testing::servers::{Host, Server};
use simulator::Simulator;
use std::collections::HashSet;
use std::thread;
use std::time::Duration;
use tree::Tree;

/// What became of one bug.
struct Verdict {
    patch: Patch,
    /// The tests that failed, as each should, and how long they took; the others.
    caught: Vec<(Test, Duration)>,
    missed: Vec<Test>,
    /// What the campaign says, where it was tried.
    campaign: Option<Noticed>,
    /// What the simulator says.
    simulator: Option<Noticed>,
}

impl Verdict {
    fn of(patch: Patch) -> Self {
        Self { patch, caught: Vec::new(), missed: Vec::new(), campaign: None, simulator: None }
    }
}

/// Shows that each of these bugs, or of all, is noticed. `quick`: by the tests alone.
pub(crate) fn run(names: &[String], quick: bool) -> Outcome {
    let patches = patch::named(names)?;
    tools::databases()?;
    tools::planted()?;
    crate::dynoxide::provide()?;
    let campaigns: HashSet<&Campaign> =
        patches.iter().filter_map(|patch| patch.campaign.as_ref()).filter(|_| !quick).collect();
    let simulated =
        Simulator::largest(patches.iter().filter_map(|patch| patch.simulator.as_ref()).filter(|_| !quick));
    if !campaigns.is_empty() {
        tools::campaign()?;
    }
    let host = Host::start()?;
    let settings = host.settings_of(&[Server::Postgres, Server::PgBouncer])?;
    let tree = Tree::open()?;
    let runner = Runner { root: tree.root().to_owned(), settings: &settings };
    let mut tests: Vec<&Test> = patches.iter().flat_map(|patch| &patch.tests).collect();
    tests.sort();
    tests.dedup();
    step::timed("planted: none", "every check passes while no bug is planted", || {
        let built = Built::of(&tree, &tests, !campaigns.is_empty(), !simulated.is_empty())?;
        side_by_side(at_once(), &tests, |test| runner.passes(&built, test))?;
        simulated.iter().try_for_each(|simulator| runner.simulator_passes(&built, simulator))?;
        campaigns.iter().try_for_each(|campaign| runner.campaign_passes(&built, campaign))
    })?;
    let mut verdicts = Vec::new();
    for patch in patches {
        step::timed(&format!("planted: {}", patch.name), &patch.what.clone(), || {
            let verdict = tree.with(&patch, || tried(&tree, &runner, &patch, &patch.tests, !quick))?;
            println!("{}", table::lines(&verdict));
            // After each, so that a run that is broken off leaves what it has found out. Also what was missed: the page says so.
            table::write(&verdict)?;
            verdicts.push(verdict);
            Ok(())
        })?;
    }
    judge(&verdicts)
}

/// Shows that the simulator notices each of these bugs, or all that it has to notice.
pub(crate) fn simulated(names: &[String]) -> Outcome {
    let mut patches = patch::named(names)?;
    patches.retain(|patch| patch.simulator.is_some());
    let tree = Tree::open()?;
    let runner = Runner { root: tree.root().to_owned(), settings: &[] };
    step::timed("planted: none", "the simulator finds nothing while no bug is planted", || {
        let built = Built::simulator(&tree)?;
        let settings = Simulator::largest(patches.iter().filter_map(|patch| patch.simulator.as_ref()));
        settings.into_iter().try_for_each(|simulator| runner.simulator_passes(&built, simulator))
    })?;
    let mut verdicts = Vec::new();
    for patch in patches {
        step::timed(&format!("planted: {}", patch.name), &patch.what.clone(), || {
            let noticed = tree.with(&patch, || {
                let built = Built::simulator(&tree)?;
                patch.simulator.as_ref().map(|settings| runner.simulator(&built, settings)).transpose()
            })?;
            let verdict = Verdict { simulator: noticed, ..Verdict::of(patch) };
            println!("{}", table::lines(&verdict));
            table::write_simulated(&verdict)?;
            verdicts.push(verdict);
            Ok(())
        })?;
    }
    judge(&verdicts)
}

/// Three bugs, others every day, as part of the tests, which have just passed: the first integration test of each has to fail.
pub(crate) fn of_the_day(settings: &[(&'static str, String)]) -> Outcome {
    let tree = Tree::open()?;
    let runner = Runner { root: tree.root().to_owned(), settings };
    let mut verdicts = Vec::new();
    for (patch, test) in of_the_day::choose(&patch::all()?, of_the_day::today()) {
        let verdict = tree.with(patch, || tried(&tree, &runner, patch, std::slice::from_ref(test), false))?;
        println!("{}", table::lines(&verdict));
        verdicts.push(verdict);
    }
    judge(&verdicts)
}

/// What these tests say of a bug that is in the copy; `at_large`: and the campaign and the simulator.
fn tried(
    tree: &Tree,
    runner: &Runner<'_>,
    patch: &Patch,
    tests: &[Test],
    at_large: bool,
) -> Result<Verdict, String> {
    let campaign = patch.campaign.as_ref().filter(|_| at_large);
    let tests: Vec<&Test> = tests.iter().collect();
    let simulator = patch.simulator.as_ref().filter(|_| at_large);
    let built = Built::of(tree, &tests, campaign.is_some(), simulator.is_some())?;
    let failed = side_by_side(at_once(), &tests, |test| runner.fails(&built, test))?;
    let mut verdict = Verdict::of(patch.clone());
    for (test, failed) in tests.into_iter().zip(failed) {
        match failed {
            Some(took) => verdict.caught.push((test.clone(), took)),
            None => verdict.missed.push(test.clone()),
        }
    }
    verdict.simulator = simulator.map(|simulator| runner.simulator(&built, simulator)).transpose()?;
    verdict.campaign = campaign.map(|campaign| runner.campaign(&built, campaign)).transpose()?;
    Ok(verdict)
}

/// How many checks at once: most of them wait more than they work.
fn at_once() -> usize {
    2 * thread::available_parallelism().map_or(1, usize::from)
}

/// Whether every test and every campaign noticed what it has to.
fn judge(verdicts: &[Verdict]) -> Outcome {
    let mut missed = Vec::new();
    for Verdict { patch, missed: tests, campaign, simulator, .. } in verdicts {
        let name = &patch.name;
        missed.extend(tests.iter().map(|test| format!("{name}: {test} passes all the same")));
        if let (Some(settings), Some(noticed @ (Noticed::NotWithin(_) | Noticed::NoVerdict(_)))) =
            (&patch.simulator, simulator)
        {
            missed.push(format!("{name}: the simulator {} ({settings})", table::told(noticed)));
        }
        if let (Some(settings), Some(noticed @ (Noticed::NotWithin(_) | Noticed::NoVerdict(_)))) =
            (&patch.campaign, campaign)
        {
            missed.push(format!("{name}: the campaign {} ({settings})", table::told(noticed)));
        }
    }
    if missed.is_empty() {
        return Ok(());
    }
    let missed = missed.join("\n");
    Err(format!(
        "{missed}\nWrite a check that notices, and name it in the header of the patch in proof/planted"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    #[test]
    fn every_patch_still_applies() {
        let failures: Vec<String> = patch::all()
            .unwrap()
            .iter()
            .filter_map(|patch| tree::apply(patch, &step::root(), &["--check"]).err())
            .collect();
        assert!(failures.is_empty(), "{}\ntry `cargo xtask planted refresh`", failures.join("\n"));
    }

    #[test]
    fn every_patch_changes_production_sources_alone() {
        // What tests are made of, and not what users run.
        let for_tests = ["semel-testing", "semel-conformance"];
        for patch in patch::all().unwrap() {
            for file in &patch.files {
                let parts: Vec<_> = file.split('/').collect();
                let is_production = matches!(parts[..], ["crates", package, "src", ..] if !for_tests.contains(&package))
                    && !parts.iter().any(|part| ["tests", "tests.rs"].contains(part));
                assert!(is_production, "{}: {file}", patch.name);
            }
        }
    }

    #[test]
    fn every_test_that_a_patch_names_is_there() {
        fn look(place: &Path, declaration: &str) -> bool {
            let Ok(entries) = fs::read_dir(place) else {
                return fs::read_to_string(place).is_ok_and(|text| text.contains(declaration));
            };
            entries.flatten().any(|entry| look(&entry.path(), declaration))
        }
        // A rule of the conformance kit is a test of every store.
        let kit = step::root().join("crates/semel-conformance/src/rules");
        for patch in patch::all().unwrap() {
            for test in &patch.tests {
                let declaration = format!("fn {}(", test.name.rsplit("::").next().unwrap_or_default());
                let place = step::root().join(&test.place);
                let is_there = look(&place, &declaration)
                    || look(&place.with_extension("rs"), &declaration)
                    || (test.program() == Some("conformance") && look(&kit, &declaration));
                assert!(is_there, "{}: there is no {test}", patch.name);
            }
        }
    }

    #[test]
    fn a_bug_that_a_test_or_its_campaign_misses_is_a_failure() {
        let patch = |name: &str| patch::named(&[name.to_owned()]).unwrap().remove(0);
        let verdict = |campaign| Verdict {
            campaign: Some(campaign),
            ..Verdict::of(patch("acknowledged-before-commit"))
        };
        let seen = Noticed::After { operations: 400, invariants: vec!["I3".into()], took: Duration::ZERO };
        assert_eq!(judge(&[verdict(seen), Verdict::of(patch("cookie-kept"))]), Ok(()));
        for missed in [Noticed::NotWithin(1_600), Noticed::NoVerdict(400)] {
            let told = judge(&[verdict(missed)]).unwrap_err();
            assert!(
                told.contains("acknowledged-before-commit") && told.contains("--only kill-gateway"),
                "{told}"
            );
        }
        let tests = patch("cookie-kept").tests;
        let told =
            judge(&[Verdict { missed: tests.clone(), ..Verdict::of(patch("cookie-kept")) }]).unwrap_err();
        assert!(told.contains(&tests[0].name), "{told}");
    }

    #[test]
    fn what_broke_off_or_was_acknowledged_too_early_is_paired_with_its_kill() {
        for (name, fault) in [
            ("broken-call-retryable", "kill-shop"),
            ("stale-connection-not-sent", "kill-shop"),
            ("acknowledged-before-commit", "kill-gateway"),
        ] {
            let campaign = patch::named(&[name.to_owned()]).unwrap().remove(0).campaign.unwrap();
            let settings = campaign.to_string();
            let pair = format!(" --only {fault} --per-fault 15 ");
            assert!(settings.contains(&pair) && campaign.within == 1_600, "{name}: {settings}");
        }
    }
}
