//! How long until the next time.

use crate::environment::Environment;
use core::time::Duration;

/// No two questions are further apart than this, but for chance.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// `every`, twice as long each time, an hour at most; and up to half as much again by chance, so that what fell into doubt
/// together is not asked about together.
#[must_use]
pub fn exponential(every: Duration, times_before: u32, environment: &Environment) -> Duration {
    let doubled = 2_u32.checked_pow(times_before).and_then(|times| every.checked_mul(times));
    let wait = doubled.unwrap_or(LONGEST).min(LONGEST.max(every));
    let more = Duration::try_from_secs_f64(wait.as_secs_f64() * environment.chance() / 2.0);
    wait.saturating_add(more.unwrap_or(Duration::ZERO))
}

/// `pause`, a quarter more or less: workers that were started together do not go on together.
#[must_use]
pub fn spread(pause: Duration, environment: &Environment) -> Duration {
    pause.mul_f64(0.75 + environment.chance() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_further_and_further_apart_up_to_an_hour() {
        let every = Duration::from_secs(5);
        let machine = Environment::default();
        for (before, least) in [(0, 5), (1, 10), (2, 20), (9, 2560), (10, 3600), (31, 3600), (4000, 3600)] {
            let least = Duration::from_secs(least);
            for _ in 0..100 {
                let wait = exponential(every, before, &machine);
                assert!(wait >= least && wait <= least + least / 2, "{before}: {wait:?}");
            }
        }
        assert!(exponential(Duration::from_secs(7200), 3, &machine) >= Duration::from_secs(7200));
        let _does_not_overflow = exponential(Duration::MAX, 3, &machine);
    }
}
