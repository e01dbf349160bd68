//! How long until the next time.

use core::time::Duration;
use uuid::Uuid;

/// No two questions are further apart than this, but for chance.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// `every`, twice as long each time, an hour at most; and up to half as much again by chance, so that what fell into doubt
/// together is not asked about together.
#[must_use]
pub fn exponential(every: Duration, times_before: u32) -> Duration {
    let doubled = 2_u32.checked_pow(times_before).and_then(|times| every.checked_mul(times));
    let wait = doubled.unwrap_or(LONGEST).min(LONGEST.max(every));
    let more = Duration::try_from_secs_f64(wait.as_secs_f64() * chance() / 2.0).unwrap_or(Duration::ZERO);
    wait.saturating_add(more)
}

/// `pause`, a quarter more or less: workers that were started together do not go on together.
#[must_use]
pub fn spread(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + chance() / 2.0)
}

/// From 0 up to 1.
fn chance() -> f64 {
    // The lower half of such a UUID is random but for its top bits.
    #[expect(clippy::cast_possible_truncation, reason = "32 random bits are enough")]
    let bits = Uuid::new_v4().as_u128() as u32;
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_further_and_further_apart_up_to_an_hour() {
        let every = Duration::from_secs(5);
        for (before, least) in [(0, 5), (1, 10), (2, 20), (9, 2560), (10, 3600), (31, 3600), (4000, 3600)] {
            let least = Duration::from_secs(least);
            for _ in 0..100 {
                let wait = exponential(every, before);
                assert!(wait >= least && wait <= least + least / 2, "{before}: {wait:?}");
            }
        }
        assert!(exponential(Duration::from_secs(7200), 3) >= Duration::from_secs(7200));
        let _does_not_overflow = exponential(Duration::MAX, 3);
    }

    #[test]
    fn chance_is_spread() {
        let early = (0..1000).filter(|_| chance() < 0.5).count();
        assert!((350..650).contains(&early), "{early}");
    }
}
