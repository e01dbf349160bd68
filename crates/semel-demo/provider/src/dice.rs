//! Throws of dice that can be had again: the same seed, the same throws.

/// Dice of one seed, each throw by its number (splitmix64).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice {
    seed: u64,
}

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self { seed }
    }

    /// The throw of this number.
    pub(crate) fn throw(self, number: u64) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut mixed = self.seed.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The throw of this number, as a share: from 0 up to, but not including, 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
    pub(crate) fn share(self, number: u64) -> f64 {
        (self.throw(number) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_spread_evenly_and_come_again() {
        let shares = |seed| (0..10_000).map(|number| Dice::seeded(seed).share(number)).collect::<Vec<_>>();
        let first = shares(7);
        assert!(first.iter().all(|share| (0.0..1.0).contains(share)));
        let below = first.iter().filter(|share| **share < 0.1).count();
        assert!((900..1100).contains(&below), "{below}");
        assert_eq!(first, shares(7));
        assert_ne!(first, shares(8));
    }
}
