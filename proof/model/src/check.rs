//! One configuration from its first state to its last.

use crate::clock::{ClockAction, ClockBounds, ClockMistake, Clocks};
use crate::config::Config;
use crate::mutants::Mutant;
use crate::protocol::{Action, Protocol};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// What came out.
#[derive(Debug)]
pub struct Outcome<A = Action> {
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// The length of the longest of the shortest ways to a state.
    pub depth: usize,
    /// The longest way that the healthy schedule had to go.
    pub longest_way: u8,
    /// How many properties hold always, and how many sometimes.
    pub properties: (usize, usize),
    /// What does not hold always, and how it comes about.
    pub broken: Vec<(&'static str, Vec<A>)>,
    /// What was reached of what has to be.
    pub reached: Vec<&'static str>,
    /// What has to be reached, and was not.
    pub missing: Vec<&'static str>,
    /// How long it took.
    pub took: Duration,
}

impl<A> Outcome<A> {
    /// Whether everything holds that has to.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.broken.is_empty() && self.missing.is_empty()
    }
}

/// Checks a configuration, calling `progress` with states and depth every few seconds.
pub fn check(config: Config, mutant: Option<Mutant>, progress: impl Fn(usize, usize)) -> Outcome {
    // With one thread the first counterexample found is the shortest.
    let threads = if mutant.is_some() { 1 } else { 2 };
    explore(Protocol::with(config, mutant), threads, Protocol::longest_way, progress)
}

/// Checks the clock.
pub fn check_clock(
    bounds: ClockBounds,
    mistake: Option<ClockMistake>,
    progress: impl Fn(usize, usize),
) -> Outcome<ClockAction> {
    let threads = if mistake.is_some() { 1 } else { 2 };
    explore(Clocks { bounds, mistake }, threads, |_| 0, progress)
}

fn explore<M>(
    model: M,
    threads: usize,
    longest_way: fn(&M) -> u8,
    progress: impl Fn(usize, usize),
) -> Outcome<M::Action>
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + Send + Sync + PartialEq + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let started = Instant::now();
    let mut checker = model.checker().threads(threads).finish_when(HasDiscoveries::AnyFailures).spawn_bfs();
    let workers = checker.handles();
    let mut reported = Instant::now();
    while !workers.iter().all(std::thread::JoinHandle::is_finished) {
        std::thread::sleep(Duration::from_millis(5));
        if reported.elapsed() > Duration::from_secs(5) {
            reported = Instant::now();
            progress(checker.unique_state_count(), checker.max_depth());
        }
    }
    for worker in workers {
        if let Err(panic) = worker.join() {
            std::panic::resume_unwind(panic);
        }
    }
    let properties = checker.model().properties();
    let discoveries = checker.discoveries();
    let of = |expectation: Expectation| properties.iter().filter(move |p| p.expectation == expectation);
    let broken = of(Expectation::Always)
        .filter_map(|property| {
            let path = discoveries.get(property.name)?;
            Some((property.name, path.clone().into_actions()))
        })
        .collect();
    let (reached, missing) = of(Expectation::Sometimes)
        .map(|property| property.name)
        .partition(|name| discoveries.contains_key(name));
    Outcome {
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        longest_way: longest_way(checker.model()),
        properties: (of(Expectation::Always).count(), of(Expectation::Sometimes).count()),
        broken,
        reached,
        missing,
        took: started.elapsed(),
    }
}
