//! One run: everything that its seed draws, from the first request until everything has settled.

use crate::audit::{Auditor, has_ended};
use crate::book::Book;
use crate::chaos;
use crate::check;
use crate::client;
use crate::dice::Dice;
use crate::fault::Struck;
use crate::faults::Faults;
use crate::gateway;
use crate::lock::locked;
use crate::log::{Meaning, Variant};
use crate::machine::Machine;
use crate::operator;
use crate::plan::Operation;
use crate::rules::Rule;
use crate::setup::Setup;
use crate::sometimes;
use crate::store::Disk;
use crate::trace::{Place, Trace};
use crate::world::{Parts, World};
use semel::clock::Terms;
use semel::{Quota, Quotas, Rate};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What a run came to.
#[derive(Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The hash of the trace, and how many lines it has.
    pub trace: (u64, u64),
    /// The trace itself, where it was kept.
    pub text: Option<String>,
    /// What should not have happened. Empty, or the run has failed.
    pub violations: Vec<String>,
    /// The faults that struck.
    pub struck: Vec<Struck>,
    /// How many operations there were, how many requests, and how many effects.
    pub counts: Counts,
    /// How often each answer was given.
    pub answers: BTreeMap<String, u64>,
    /// How often each thing happened that has to happen in some runs, and how often each policy met each answer.
    pub sometimes: BTreeMap<String, u64>,
    /// Whether nothing of it is left in memory.
    pub is_freed: bool,
}

/// How much a run did.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    /// Operations that clients wanted done.
    pub operations: u64,
    /// Requests that clients sent.
    pub requests: u64,
    /// Attempts that began.
    pub starts: u64,
    /// Effects in the ledger.
    pub effects: u64,
    /// Faults that struck.
    pub faults: u64,
    /// Virtual seconds.
    pub seconds: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            requests: self.requests + other.requests,
            starts: self.starts + other.starts,
            effects: self.effects + other.effects,
            faults: self.faults + other.faults,
            seconds: self.seconds + other.seconds,
        }
    }
}

/// Runs a seed.
///
/// # Errors
/// The runtime cannot be built.
pub fn run(setup: &Setup) -> Result<Report, std::io::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let tasks = tokio::task::LocalSet::new();
    let (mut report, world) = tasks.block_on(&runtime, simulate(setup));
    drop((tasks, runtime));
    // Millions of runs follow each other in one process.
    report.is_freed = world.upgrade().is_none();
    Ok(report)
}

async fn simulate(setup: &Setup) -> (Report, Weak<World>) {
    let world = world(setup);
    let gateways = world.hosts.len();
    for number in 0..gateways {
        let process = gateway::start(&world, number);
        locked(&world.gateways).push(process);
    }
    let chaos = chaos::begin(&world);
    let operators = tokio::spawn(operator::watch(Arc::clone(&world)));
    let wants = (0..world.plan.len()).map(|number| tokio::spawn(client::want(Arc::clone(&world), number)));
    let wants: Vec<_> = wants.collect();
    for want in wants {
        let _ = want.await;
    }
    world.trace.note(Place::Faults, format_args!("everything heals"));
    world.faults.heal();
    chaos.iter().for_each(tokio::task::AbortHandle::abort);
    heal(&world, gateways);
    let mut violations = settle(&world).await;
    operators.abort();
    violations.extend(check::judge(&world));
    // Each process knows the world, and would keep it.
    locked(&world.gateways).clear();
    (report(setup, &world, violations), Arc::downgrade(&world))
}

fn world(setup: &Setup) -> Arc<World> {
    let seed = setup.seed;
    let trace = Arc::new(Trace::begin(setup.keep_text));
    let faults = Arc::new(Faults::draw(setup));
    let dice = Dice::of(seed, "plan");
    let rules = Arc::new(Rule::draw(&dice));
    let shortest = rules.iter().map(|rule| rule.policy().remembered()).min().unwrap_or_default();
    let gap = Duration::from_micros(1_000 * dice.below(60) + 1_000);
    let plan = (0..setup.operations).map(|number| Operation::draw(number, rules.len(), gap, &dice)).collect();
    let (book, machine) = (Arc::new(Book::default()), Machine::new());
    let gateways = Dice::of(seed, "gateways");
    let (count, is_shared) = (1 + gateways.below(3), gateways.chance(0.5));
    let host = |_| if is_shared { machine.clone() } else { Machine::new() };
    let hosts = (0..count).map(host).collect();
    let auditor = Arc::new(Auditor::new(Arc::clone(&trace), Arc::clone(&book), Arc::clone(&rules)));
    let hold = Duration::from_secs(dice.pick(&[15 * 60, 15 * 60, 60, 10]));
    let terms = Terms { hold, ..Terms::default() };
    let disk = Disk::audited(machine.clone(), terms.within(shortest), auditor.clone());
    let rate = Rate { per_second: 10 + u32::try_from(dice.below(30)).unwrap_or(0), burst: 5 };
    let quota = Quota {
        new_keys: dice.chance(0.25).then_some(rate),
        live_keys: dice.chance(0.15).then(|| 10 + dice.below(60)),
    };
    World::of(Parts {
        seed,
        trace,
        faults,
        machine,
        hosts,
        disk,
        book,
        auditor,
        rules,
        plan,
        quotas: Quotas { default: quota, ..Quotas::default() },
        max_concurrent_batches: 1 + usize::try_from(dice.below(3)).unwrap_or(0),
        sealed: dice.chance(0.3),
    })
}

fn heal(world: &Arc<World>, gateways: usize) {
    world.machine.put_right();
    world.hosts.iter().for_each(Machine::put_right);
    world.outage.last(Duration::ZERO);
    world.start_service();
    world.start_provider();
    for number in 0..gateways {
        world.link_of(number).heal();
        if world.gateway(number).life.is_alive() {
            world.gateway(number).engine.set_quotas(world.quotas_in_force());
        } else {
            chaos::start(world, number);
        }
    }
}

/// How long everything has to settle in, once nothing goes wrong any more.
const SETTLES_WITHIN: u64 = 15 * 60 * 1_000;

/// Asks again for everything, until each request has an answer that stays, and nothing is open in the store.
async fn settle(world: &Arc<World>) -> Vec<String> {
    let healed = world.trace.now();
    // What is left to a retry ends only if every request that was ever sent comes again.
    let of = |number: usize| {
        let variants = [Variant::Plain, Variant::Altered, Variant::Neighbour];
        variants
            .into_iter()
            .filter(move |variant| world.plan[number].has(*variant))
            .map(move |variant| (number, variant))
    };
    let mut open: Vec<(usize, Variant)> = (0..world.plan.len()).flat_map(of).collect();
    for round in 0_usize.. {
        let asked: Vec<_> = open
            .iter()
            .map(|wanted| {
                let (world, (number, variant)) = (Arc::clone(world), *wanted);
                tokio::spawn(async move {
                    let told = client::send(&world, number, variant, round + number).await;
                    ((number, variant), told.is_some_and(Meaning::is_definite))
                })
            })
            .collect();
        open.clear();
        for told in asked {
            if let Ok((wanted, false)) = told.await {
                open.push(wanted);
            }
        }
        let unsettled = unsettled(world);
        if open.is_empty() && unsettled.is_empty() {
            return Vec::new();
        }
        if world.trace.now() - healed > SETTLES_WITHIN {
            let told = open.iter().map(|(number, variant)| {
                format!("settling #{number} {variant:?} has no answer that stays, after healing")
            });
            return told.chain(unsettled).collect();
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    Vec::new()
}

fn unsettled(world: &World) -> Vec<String> {
    let contents = world.disk.contents();
    let open = contents.all().filter(|(record, damaged)| !damaged && !has_ended(record.state));
    open.map(|(record, _)| {
        format!("settling {} is {}, after healing", record.operation_id, record.state.as_str())
    })
    .collect()
}

fn report(setup: &Setup, world: &World, violations: Vec<String>) -> Report {
    let told = world.told();
    let mut meanings: BTreeMap<Option<Meaning>, u64> = BTreeMap::new();
    for told in told.iter() {
        *meanings.entry(told.answer.as_ref().map(|answer| answer.meaning)).or_default() += 1;
    }
    let word = |meaning: Option<Meaning>| meaning.map_or("none".to_owned(), |it| format!("{it:?}"));
    let rule = |number: u32| &world.rules[world.plan[number as usize].rule];
    let mut sometimes = sometimes::answers(told.iter().map(|told| (rule(told.number), told)));
    sometimes.extend(world.auditor.sights.counts());
    let pages = world.book.pages();
    let struck = world.faults.struck();
    Report {
        seed: setup.seed,
        trace: world.trace.hash(),
        text: world.trace.text(),
        violations,
        counts: Counts {
            operations: u64::from(setup.operations),
            requests: told.len() as u64,
            starts: pages.starts.len() as u64,
            effects: pages.effects.len() as u64,
            faults: struck.len() as u64,
            seconds: world.trace.now() / 1_000,
        },
        struck,
        answers: meanings.into_iter().map(|(meaning, count)| (word(meaning), count)).collect(),
        sometimes,
        is_freed: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rule;
    use crate::scene::{ID, NUMBER, Scene};
    use semel::transition::Act;

    /// A world in which nobody wants anything more, and one operation is there.
    async fn left(ends: bool) -> (Vec<String>, u64) {
        let scene = Scene::forgotten(Rule::drawn(|rule| !rule.takes_over()), NUMBER);
        let record = scene.reserve(ID).await;
        scene.start(&record);
        scene.charge(&record);
        if ends {
            scene.end(&record).await;
        } else {
            let settling = semel::Settling::Operator;
            scene.act(&record, &Act::Doubt { error: "timeout".into(), settling }).await;
        }
        let violations = settle(&scene.world).await;
        (violations, scene.world.trace.now())
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_open_when_the_time_to_settle_is_over_is_a_violation() {
        let (violations, _) = left(true).await;
        assert_eq!(violations, Vec::<String>::new());
        let (violations, took) = left(false).await;
        assert_eq!(violations, [format!("settling {ID} is unknown, after healing")]);
        assert!((SETTLES_WITHIN..SETTLES_WITHIN + 10_000).contains(&took), "{took} ms");
    }
}
