//! What an engine takes from the machine that it runs on: clocks and randomness.

use crate::clock::{Clock, SystemClock};
use crate::identity::{OperationId, Owner};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// Random numbers for identities, owner tokens, secrets and jitter.
pub trait Randomness: Send + Sync + 'static {
    /// 128 unpredictable bits.
    fn bits(&self) -> u128;
}

/// Clocks and randomness of an engine, and of the workers beside it. The default is the machine's own.
///
/// With other ones, what an engine does depends on its calls and on nothing else, as in the simulator (`proof/simulator`). Timers are tokio's, and
/// go by the clock of its runtime. The nonces of seals are not included: they always come from the operating system, and no decision depends on them.
///
/// Cheap to clone, and the default costs nothing.
#[derive(Clone, Default)]
pub struct Environment(Option<Arc<Given>>);

struct Given {
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
}

impl Environment {
    /// These clocks, and this randomness. **Owner tokens and secrets are made of it**: what can be guessed protects nothing.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, randomness: Arc<dyn Randomness>) -> Self {
        Self(Some(Arc::new(Given { clock, randomness })))
    }

    /// The time of day. It may jump.
    #[must_use]
    pub fn wall(&self) -> SystemTime {
        match &self.0 {
            None => SystemClock.wall(),
            Some(given) => given.clock.wall(),
        }
    }

    /// The time since some fixed moment, suspended time included. It cannot be set.
    #[must_use]
    pub fn boottime(&self) -> Duration {
        match &self.0 {
            None => crate::boottime::now(),
            Some(given) => given.clock.boottime(),
        }
    }

    /// A new operation id (UUIDv7: ids sort by the time of their making, which keeps index pages together).
    #[must_use]
    pub fn operation_id(&self) -> OperationId {
        let Some(given) = &self.0 else { return OperationId::random() };
        let millis = u64::try_from(given.clock.wall_millis()).unwrap_or(0);
        let [random @ .., _, _, _, _, _, _] = given.randomness.bits().to_be_bytes();
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().into()
    }

    /// A new owner token.
    #[must_use]
    pub fn owner(&self) -> Owner {
        match &self.0 {
            None => Owner::random(),
            Some(given) => Owner::from_u128(given.randomness.bits()),
        }
    }

    /// A new secret.
    pub(crate) fn secret(&self) -> [u8; 32] {
        let halves = [self.bits(), self.bits()].map(u128::to_be_bytes);
        let mut secret = [0; 32];
        secret.copy_from_slice(halves.as_flattened());
        secret
    }

    /// From 0 up to 1.
    pub(crate) fn chance(&self) -> f64 {
        // The lower half of such a UUID is random but for its top bits.
        #[expect(clippy::cast_possible_truncation, reason = "32 random bits are enough")]
        let bits = self.bits() as u32;
        f64::from(bits) / f64::from(u32::MAX)
    }

    fn bits(&self) -> u128 {
        match &self.0 {
            None => Uuid::new_v4().as_u128(),
            Some(given) => given.randomness.bits(),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_none() { "Environment(system)" } else { "Environment(given)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    struct Counting(AtomicU64);

    impl Randomness for Counting {
        fn bits(&self) -> u128 {
            u128::from(self.0.fetch_add(1, Relaxed))
        }
    }

    struct Standing;

    impl Clock for Standing {
        fn wall(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_secs(7)
        }
        fn boottime(&self) -> Duration {
            Duration::from_secs(8)
        }
        fn synchronised(&self) -> Option<bool> {
            Some(true)
        }
    }

    fn given() -> Environment {
        Environment::new(Arc::new(Standing), Arc::new(Counting(AtomicU64::new(1))))
    }

    #[test]
    fn equal_environments_make_equal_things() {
        let make = |it: Environment| (it.operation_id(), it.owner(), it.secret(), it.boottime(), it.wall());
        assert_eq!(make(given()), make(given()));
        let twice = given();
        assert_ne!(twice.owner(), twice.owner());
        assert_eq!(Uuid::from(given().operation_id()).get_version_num(), 7);
    }

    #[test]
    fn the_machines_own_chance_is_spread() {
        let early = (0..1000).filter(|_| Environment::default().chance() < 0.5).count();
        assert!((350..650).contains(&early), "{early}");
    }
}
