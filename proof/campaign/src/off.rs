//! By how much a clock is off, and how far a store may be led by that. Pure.

use crate::plan::BRIEF;
use crate::profile::Profile;
use semel::clock::Terms;
use std::fmt;
use std::time::Duration;

/// By how much a clock is off, in minutes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Off(i64);

impl Off {
    /// A clock that is right.
    pub(crate) const NONE: Self = Self(0);

    /// What a hand does, a machine that was suspended, and a battery that is empty. Some is followed, and some is not.
    pub(crate) const ALL: [Self; 8] = [
        Self(5),
        Self(-5),
        Self(40),
        Self(2 * 60),
        Self(-2 * 60),
        Self(3 * 24 * 60),
        Self(-3 * 24 * 60),
        Self(30 * 24 * 60),
    ];

    pub(crate) fn minutes(self) -> i64 {
        self.0
    }

    /// Further behind a store's mark than a start may be: by more than `clock.max_step`, which is an hour at most.
    pub(crate) fn is_far_behind(self) -> bool {
        self.0 < -60
    }
}

/// As libfaketime has it.
impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+}m", self.0)
    }
}

/// How far the store's time may have been from the true one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreTime {
    /// No clock that the store goes by was ever wrong.
    True,
    /// Such a clock stepped. Windows may end late: they are stamped by the latest time that was claimed. They end earlier than they should by what was
    /// followed of the steps, and by no more.
    Stepped { followed: Duration },
}

impl StoreTime {
    /// After these steps of its clock.
    pub(crate) fn after(steps: &[Off], profile: Profile) -> Self {
        if steps.is_empty() {
            return Self::True;
        }
        let (mut steps, most) = (steps.to_vec(), most_followed(profile));
        steps.sort_unstable();
        let mut led = Duration::ZERO;
        // One that was followed brings the next one nearer.
        for step in steps {
            let ahead = Duration::from_secs(60 * u64::try_from(step.0).unwrap_or_default());
            if ahead.saturating_sub(led) <= most {
                led = led.max(ahead);
            }
        }
        Self::Stepped { followed: led }
    }

    /// How much of a window is sure to have been kept.
    pub(crate) fn sure(self, window: Duration) -> Duration {
        match self {
            Self::True => window,
            Self::Stepped { followed } => window.saturating_sub(followed),
        }
    }
}

/// `clock.max_step`: an hour, and at most a quarter of the shortest time for which a key is remembered, which is the brief window where keys are new after
/// it. No step is shorter than a second. Not by the gateway's own formula, whose mistakes are to be noticed.
fn most_followed(profile: Profile) -> Duration {
    if profile.renews() { (BRIEF / 4).max(Terms::SHORTEST_STEP) } else { Duration::from_secs(60 * 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_led_by_what_is_followed_and_by_what_that_brings_near() {
        let followed = |minutes: &[i64], profile| {
            let steps: Vec<_> = minutes.iter().map(|&minutes| Off(minutes)).collect();
            match StoreTime::after(&steps, profile) {
                StoreTime::True => None,
                StoreTime::Stepped { followed } => Some(followed.as_secs() / 60),
            }
        };
        assert_eq!(followed(&[], Profile::Usual), None);
        assert_eq!(followed(&[-5], Profile::Usual), Some(0));
        assert_eq!(
            followed(&[40, 5, 120, 43_200], Profile::Usual),
            Some(40),
            "two hours are 80 minutes more"
        );
        assert_eq!(followed(&[120, 60], Profile::Usual), Some(120));
        assert_eq!(followed(&[5, 40, 43_200], Profile::ExpiredNew), Some(0));
    }

    #[test]
    fn a_window_that_nothing_was_followed_in_is_as_long_as_it_should_be() {
        let window = Duration::from_secs(2);
        assert_eq!(StoreTime::after(&Off::ALL, Profile::ExpiredNew).sure(window), window);
        assert_eq!(StoreTime::after(&Off::ALL, Profile::Usual).sure(window), Duration::ZERO);
        let day = Duration::from_secs(24 * 60 * 60);
        assert!(StoreTime::after(&Off::ALL, Profile::Usual).sure(day) > day / 2);
    }

    #[test]
    fn steps_are_spelt_as_libfaketime_reads_them() {
        assert_eq!([Off(5), Off(-120), Off::NONE].map(|off| off.to_string()), ["+5m", "-120m", "+0m"]);
    }
}
