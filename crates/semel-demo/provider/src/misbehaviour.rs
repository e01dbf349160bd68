//! Bad days, on demand: one request by a header, or many by rates and a seed.

use crate::dice::Dice;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The header that chooses what becomes of one request: a mode's name, or `none` for a good day whatever the rates say.
pub(crate) const MODE_HEADER: &str = "x-provider-mode";

/// What can go wrong with a request to charge or to refund.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// The effect, and then the connection is closed without a byte of an answer.
    DropAfter,
    /// The effect, and then 500.
    ErrorAfter,
    /// The effect, and then no answer for a long time.
    StallAfter,
    /// Nothing for a long time, and then the effect, whether or not anybody still waits for it.
    StallBefore,
    /// No effect: the card is declined, and that is remembered.
    Decline,
    /// No effect: 503.
    Reject,
    /// No effect: the connection is closed without a byte of an answer.
    DropBefore,
}

impl Mode {
    /// All of them, in the order in which their rates share out a throw of the dice.
    pub const ALL: [Self; 7] = [
        Self::DropAfter,
        Self::ErrorAfter,
        Self::StallAfter,
        Self::StallBefore,
        Self::Decline,
        Self::Reject,
        Self::DropBefore,
    ];

    /// Its name in headers and settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DropAfter => "drop-after",
            Self::ErrorAfter => "error-after",
            Self::StallAfter => "stall-after",
            Self::StallBefore => "stall-before",
            Self::Decline => "decline",
            Self::Reject => "reject",
            Self::DropBefore => "drop-before",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// How often which mode comes.
///
/// As text `drop-after=0.1,error-after=0.05,lose-every=7`, as JSON `{"drop-after":0.1,"error-after":0.05,"lose-every":7}`.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(try_from = "BTreeMap<String, f64>")]
pub struct Misbehaviour {
    rates: BTreeMap<Mode, f64>,
    lose_every: Option<NonZeroU64>,
}

const LOSE_EVERY: &str = "lose-every";

/// Why something is no misbehaviour.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidMisbehaviour(String);

impl Misbehaviour {
    /// Gives a mode this share of the requests.
    ///
    /// # Errors
    /// The rate is not from 0 to 1, or all together are more than 1.
    pub fn with_rate(mut self, mode: Mode, rate: f64) -> Result<Self, InvalidMisbehaviour> {
        if !(0.0..=1.0).contains(&rate) {
            return Err(InvalidMisbehaviour(format!(
                "the rate of {} is from 0 to 1, not {rate}",
                mode.name()
            )));
        }
        self.rates.insert(mode, rate);
        let sum: f64 = self.rates.values().sum();
        // Room for what adding decimal fractions in binary makes of them.
        if sum > 1.0 + 1e-9 {
            return Err(InvalidMisbehaviour(format!("the rates are more than 1 together: {sum}")));
        }
        Ok(self)
    }

    /// Loses every nth request: no effect, no answer, connection closed.
    #[must_use]
    pub fn with_lose_every(mut self, n: NonZeroU64) -> Self {
        self.lose_every = Some(n);
        self
    }

    fn with_named(self, name: &str, number: f64) -> Result<Self, InvalidMisbehaviour> {
        if name == LOSE_EVERY {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole, and in between"
            )]
            let whole = (number.fract() == 0.0 && (1.0..=1e9).contains(&number)).then_some(number as u64);
            let n = whole.and_then(NonZeroU64::new);
            let wrong =
                || InvalidMisbehaviour(format!("{LOSE_EVERY} is a whole number from 1, not {number}"));
            return Ok(self.with_lose_every(n.ok_or_else(wrong)?));
        }
        match Mode::named(name) {
            Some(mode) => self.with_rate(mode, number),
            None => {
                Err(InvalidMisbehaviour(format!("{name:?} is not a misbehaviour: use one of {}", names())))
            }
        }
    }

    /// The mode of the `number`th request, from 1.
    fn of(&self, number: u64, dice: Dice) -> Option<Mode> {
        if self.lose_every.is_some_and(|n| number.is_multiple_of(n.get())) {
            return Some(Mode::DropBefore);
        }
        let mut share = dice.share(number);
        self.rates.iter().find_map(|(mode, rate)| {
            share -= rate;
            (share < 0.0).then_some(*mode)
        })
    }
}

fn names() -> String {
    Mode::ALL.map(Mode::name).into_iter().chain([LOSE_EVERY]).collect::<Vec<_>>().join(", ")
}

impl TryFrom<BTreeMap<String, f64>> for Misbehaviour {
    type Error = InvalidMisbehaviour;

    fn try_from(named: BTreeMap<String, f64>) -> Result<Self, InvalidMisbehaviour> {
        named.iter().try_fold(Self::default(), |so_far, (name, number)| so_far.with_named(name, *number))
    }
}

impl FromStr for Misbehaviour {
    type Err = InvalidMisbehaviour;

    fn from_str(text: &str) -> Result<Self, InvalidMisbehaviour> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.into_iter().try_fold(Self::default(), |so_far, part| {
            let number = part.split_once('=').and_then(|(name, number)| Some((name, number.parse().ok()?)));
            match number {
                Some((name, number)) => so_far.with_named(name, number),
                None => Err(InvalidMisbehaviour(format!("{part:?} is not of the form drop-after=0.1"))),
            }
        })
    }
}

impl fmt::Display for Misbehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = self.rates.iter().map(|(mode, rate)| format!("{}={rate}", mode.name()));
        let lost = self.lose_every.map(|n| format!("{LOSE_EVERY}={n}"));
        f.write_str(&rates.chain(lost).collect::<Vec<_>>().join(","))
    }
}

impl Serialize for Misbehaviour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (mode, rate) in &self.rates {
            map.serialize_entry(mode.name(), rate)?;
        }
        if let Some(n) = self.lose_every {
            map.serialize_entry(LOSE_EVERY, &n)?;
        }
        map.end()
    }
}

/// Deals out what becomes of each request.
///
/// The fate hangs on the seed and on how many requests have come since it was set, and on nothing that is in the request: the same
/// requests in the same order fare the same way.
#[derive(Default)]
pub(crate) struct Fates {
    arrived: AtomicU64,
}

impl Fates {
    pub(crate) fn draw(&self, misbehave: &Misbehaviour, seed: u64) -> Option<Mode> {
        let number = self.arrived.fetch_add(1, Ordering::Relaxed) + 1;
        misbehave.of(number, Dice::seeded(seed))
    }

    pub(crate) fn start_again(&self) {
        self.arrived.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(text: &str, seed: u64) -> Vec<Option<Mode>> {
        let (misbehave, fates): (Misbehaviour, _) = (text.parse().unwrap(), Fates::default());
        (0..2000).map(|_| fates.draw(&misbehave, seed)).collect()
    }

    #[test]
    fn the_same_seed_deals_the_same_fates() {
        let rates = "drop-after=0.1,error-after=0.2,decline=0.05,lose-every=9";
        assert_eq!(fates(rates, 7), fates(rates, 7));
        assert_ne!(fates(rates, 7), fates(rates, 8));
    }

    #[test]
    fn a_rate_is_the_share_that_it_says() {
        let fates = fates("drop-after=0.1,error-after=0.2", 7);
        let share = |mode| fates.iter().filter(|fate| **fate == mode).count();
        assert!((150..250).contains(&share(Some(Mode::DropAfter))));
        assert!((340..460).contains(&share(Some(Mode::ErrorAfter))));
        assert!((1320..1480).contains(&share(None)));
        assert!(self::fates("drop-after=0.3,decline=0.7", 3).iter().all(Option::is_some));
        assert!(self::fates("", 3).iter().all(Option::is_none));
    }

    #[test]
    fn every_nth_is_lost() {
        let lost = |(number, fate): (usize, &Option<Mode>)| (fate.is_some(), (number + 1).is_multiple_of(7));
        assert!(fates("lose-every=7", 1).iter().enumerate().map(lost).all(|(lost, seventh)| lost == seventh));
    }

    #[test]
    fn it_is_read_as_it_is_written() {
        let text = "drop-after=0.1,drop-before=0.25,lose-every=7";
        let misbehave: Misbehaviour = text.parse().unwrap();
        assert_eq!(misbehave.to_string(), text);
        let json = serde_json::to_string(&misbehave).unwrap();
        assert_eq!(json, r#"{"drop-after":0.1,"drop-before":0.25,"lose-every":7}"#);
        assert_eq!(serde_json::from_str::<Misbehaviour>(&json).unwrap(), misbehave);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            "drop-after",
            "drop-after=",
            "drop-after=x",
            "drop-after=-0.1",
            "drop-after=1.1",
            "drop-after=NaN",
            "drop-after=0.6,decline=0.6",
            "drop=0.1",
            "lose-every=0",
            "lose-every=0.5",
        ] {
            assert!(text.parse::<Misbehaviour>().is_err(), "{text:?}");
        }
    }
}
