//! How far the server's clock is believed where no store is there to say so.

use super::retention::millis;
use std::sync::OnceLock;
use std::time::Duration;

/// By how much the clock may have been set ahead since it was first seen: more is a jump.
const MOST: Duration = Duration::from_secs(60 * 60);

/// What the server's clock said first, and when that was by this process's boot time.
#[derive(Debug, Default)]
pub(super) struct Watch(OnceLock<(i64, Duration)>);

impl Watch {
    /// The time that is believed, in milliseconds.
    pub(super) fn judge(&self, claimed: i64, boottime: Duration) -> i64 {
        let (first, at) = *self.0.get_or_init(|| (claimed, boottime));
        let passed = boottime.saturating_sub(at).saturating_add(MOST);
        claimed.min(first.saturating_add(millis(passed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_with_the_servers_clock_and_does_not_jump_with_it() {
        const HOUR: i64 = 60 * 60 * 1_000;
        let (watch, noon, hours) = (Watch::default(), 1_800_000_000_000, |hours| MOST * hours);
        assert_eq!(watch.judge(noon, hours(1)), noon);
        assert_eq!(watch.judge(noon + 5 * HOUR, hours(6)), noon + 5 * HOUR);
        assert_eq!(watch.judge(noon + 6 * HOUR, hours(6)), noon + 6 * HOUR, "it was put right");
        assert_eq!(watch.judge(noon + 720 * HOUR, hours(6)), noon + 6 * HOUR);
        assert_eq!(watch.judge(noon + 7 * HOUR, hours(7)), noon + 7 * HOUR, "it has come back");
        assert_eq!(watch.judge(noon - HOUR, hours(8)), noon - HOUR);
    }
}
