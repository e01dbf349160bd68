//! How long the healthy schedule takes, remembered for all states that it came through.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How far it is from here to a settled state, where that is known.
#[derive(Debug)]
pub(crate) struct Distances {
    shards: Vec<Mutex<HashMap<u64, u8>>>,
}

impl Default for Distances {
    fn default() -> Self {
        Self { shards: (0..64).map(|_| Mutex::default()).collect() }
    }
}

impl Distances {
    pub(crate) fn shard(&self, at: u64) -> std::sync::MutexGuard<'_, HashMap<u64, u8>> {
        let index = (at % self.shards.len() as u64) as usize;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn longest(&self) -> u8 {
        let longest = |shard: &Mutex<HashMap<u64, u8>>| {
            shard.lock().unwrap_or_else(PoisonError::into_inner).values().copied().max()
        };
        self.shards.iter().filter_map(longest).max().unwrap_or(0)
    }
}
