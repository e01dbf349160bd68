//! What is to be run.

use crate::fault::{Fault, Struck};
use std::collections::BTreeSet;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Everything is drawn from it.
    pub seed: u64,
    /// How many operations clients want done.
    pub operations: u32,
    /// Only these kinds of faults, each of them; if empty, any.
    pub only: Vec<Fault>,
    /// How often each kind strikes, as a part of what it may at most; `None`: as is drawn for each.
    pub density: Option<f64>,
    /// Of what strikes, this alone; `None`: all of it.
    pub allowed: Option<BTreeSet<Struck>>,
    /// Whether the lines of the trace are kept.
    pub keep_text: bool,
}

impl Setup {
    /// A run of this seed, of the usual size.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self { seed, operations: 600, only: Vec::new(), density: None, allowed: None, keep_text: false }
    }
}
