//! How often each fault strikes in a run, and which of them are spared when a failing run is made smaller.

use crate::dice::{Dice, mixed};
use crate::fault::{Fault, Struck};
use crate::setup::Setup;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The faults of one run.
pub(crate) struct Faults {
    seed: u64,
    densities: Vec<f64>,
    could: Vec<AtomicU32>,
    /// Nothing else strikes; `None`: whatever is drawn.
    allowed: Option<BTreeSet<Struck>>,
    struck: Mutex<Vec<Struck>>,
    healed: AtomicBool,
}

impl Faults {
    /// Swarm testing: half of the kinds, each with a density of its own, unless one is given. With `only`, these kinds, all of them.
    pub(crate) fn draw(setup: &Setup) -> Self {
        let Setup { seed, only, density: given, allowed, .. } = setup;
        let (seed, allowed) = (*seed, allowed.clone());
        let dice = Dice::of(seed, "faults");
        let density = |fault: &Fault| {
            let (drawn, density) = (dice.chance(0.5), dice.log_uniform(0.02, 1.0));
            let density = given.unwrap_or(density) * fault.most();
            let is_in =
                if only.is_empty() { drawn && *fault != Fault::Failover } else { only.contains(fault) };
            if is_in { density } else { 0.0 }
        };
        Self {
            seed,
            densities: Fault::ALL.iter().map(density).collect(),
            could: Fault::ALL.iter().map(|_| AtomicU32::new(0)).collect(),
            allowed,
            struck: Mutex::new(Vec::new()),
            healed: AtomicBool::new(false),
        }
    }

    /// Whether it strikes now.
    pub(crate) fn strikes(&self, fault: Fault) -> bool {
        let index = fault as usize;
        if self.densities[index] <= 0.0 || self.healed.load(Relaxed) {
            return false;
        }
        let number = self.could[index].fetch_add(1, Relaxed);
        let roll = mixed(self.seed, [index as u64, u64::from(number)]) >> 11;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let strikes = (roll as f64 / (1_u64 << 53) as f64) < self.densities[index]
            && self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&(fault, number)));
        if strikes {
            self.struck.lock().unwrap_or_else(PoisonError::into_inner).push((fault, number));
        }
        strikes
    }

    /// Whether it can strike in this run.
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.densities[fault as usize] > 0.0
    }

    /// From now on nothing goes wrong.
    pub(crate) fn heal(&self) {
        self.healed.store(true, Relaxed);
    }

    pub(crate) fn are_healed(&self) -> bool {
        self.healed.load(Relaxed)
    }

    pub(crate) fn struck(&self) -> Vec<Struck> {
        self.struck.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
