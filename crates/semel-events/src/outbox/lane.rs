//! Which lane an aggregate is in.

use sha2::{Digest as _, Sha256};

/// How many parts the outbox has: as many publishers can share the work. Fixed, for it is written with every event.
pub const LANES: u8 = 64;

/// A part of the outbox, from 0 up to [`LANES`]: all events of one aggregate are in the same one.
pub type Lane = u8;

/// The place of an aggregate: the same in every build, on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The lane that all its events are in.
    pub lane: Lane,
    /// Names the aggregate in a lock, where a store has any.
    pub key: i64,
}

impl Place {
    /// Where this aggregate belongs.
    #[must_use]
    pub fn of(aggregate: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(aggregate).into();
        let [lane, key @ ..] = digest;
        let mut eight = [0; 8];
        eight.copy_from_slice(&key[..8]);
        Self { lane: lane % LANES, key: i64::from_be_bytes(eight) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_never_changes() {
        let place = Place::of("payment/pay_1");
        assert_eq!((place.lane, place.key), (57, 1_921_500_660_998_700_565));
    }

    #[test]
    fn aggregates_spread_over_all_lanes() {
        let lanes: std::collections::BTreeSet<_> =
            (0..2000).map(|number| Place::of(&format!("payment/pay_{number}")).lane).collect();
        assert_eq!(lanes.len(), usize::from(LANES));
    }
}
