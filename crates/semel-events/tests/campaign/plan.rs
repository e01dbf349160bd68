//! Who is killed, where, and after how much.

use crate::trap::{Place, Trap};
use semel_conformance::kill::Dice;

/// What is killed when the trap is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Victim {
    Process,
    /// The process lives on.
    Broker,
    Both,
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incident {
    pub(crate) trap: Trap,
    pub(crate) victim: Victim,
}

/// What happens to one process, up to its death.
pub(crate) type Life = Vec<Incident>;

/// The whole of it.
pub(crate) struct Plan {
    pub(crate) publishers: Vec<Life>,
    pub(crate) consumers: Vec<Life>,
}

/// What the dice are thrown by.
#[allow(clippy::print_stdout, reason = "the seed of a run that failed")]
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("SEMEL_KILL_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => u64::from(std::process::id()),
    };
    println!("SEMEL_KILL_SEED={seed}");
    seed
}

impl Plan {
    pub(crate) fn of(seed: u64, payments: usize) -> Self {
        let mut dice = Dice::seeded(seed);
        // All counts together stay below what there is, so that every trap is reached.
        let mut incident = |place: Place, one_in: usize, victim: Victim| {
            let count = 1 + usize::try_from(dice.below((payments / one_in) as u64)).unwrap();
            Incident { trap: Trap { place, count, holds: victim != Victim::Broker }, victim }
        };
        use Place::{After, Before, BetweenEffects, InTransaction};
        use Victim::{Both, Broker, Process};
        let publishers = vec![
            vec![incident(After, 6, Process)],
            vec![incident(Before, 6, Broker), incident(After, 12, Process)],
            vec![incident(After, 12, Both)],
        ];
        let consumers = vec![
            vec![incident(InTransaction, 20, Process)],
            vec![incident(BetweenEffects, 200, Process)],
            vec![incident(After, 20, Broker), incident(After, 20, Process)],
            vec![incident(BetweenEffects, 200, Process)],
            vec![incident(Before, 20, Both)],
            vec![incident(InTransaction, 20, Process)],
        ];
        Self { publishers, consumers }
    }
}
