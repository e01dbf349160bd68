//! Wrong tokens, counted by where they come from.

use crate::capacity::Party;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens until no more are looked at.
const ALLOWED: u32 = 5;

/// How long a wrong token counts.
const WINDOW: Duration = Duration::from_secs(15 * 60);

/// Parties remembered at once. Whoever has more addresses than this guesses a 128-bit token no sooner.
const REMEMBERED: usize = 10_000;

/// Wrong tokens of the last minutes.
#[derive(Default)]
pub(super) struct Attempts {
    wrong: Mutex<HashMap<Party, (u32, Instant)>>,
}

impl Attempts {
    /// How long this party has to wait before its next token is looked at.
    pub(super) fn wait(&self, party: Party) -> Option<Duration> {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, since) = wrong.get(&party)?;
        let left = WINDOW.checked_sub(since.elapsed())?;
        (*count >= ALLOWED).then_some(left)
    }

    /// It sent a wrong one.
    pub(super) fn failed(&self, party: Party) {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() >= REMEMBERED {
            wrong.retain(|_, (_, since)| since.elapsed() < WINDOW);
        }
        if wrong.len() >= REMEMBERED {
            wrong.clear();
        }
        let entry = wrong.entry(party).or_insert_with(|| (0, Instant::now()));
        if entry.1.elapsed() >= WINDOW {
            *entry = (0, Instant::now());
        }
        entry.0 += 1;
    }

    /// It sent the right one.
    pub(super) fn succeeded(&self, party: Party) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).remove(&party);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sixth_wrong_token_is_not_looked_at() {
        let attempts = Attempts::default();
        let [guesser, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| Party::of(ip.parse().unwrap()));
        for _ in 0..ALLOWED {
            assert!(attempts.wait(guesser).is_none());
            attempts.failed(guesser);
        }
        assert!(attempts.wait(guesser).is_some() && attempts.wait(other).is_none());
        attempts.succeeded(guesser);
        assert!(attempts.wait(guesser).is_none());
    }
}
