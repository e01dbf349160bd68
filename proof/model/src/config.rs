//! What is checked: the policy, what the provider promises, and how much goes wrong at most.

use semel::{Expired, Policy, Settling, Stale};
use std::time::Duration;

/// What the third client does differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Third {
    /// It sends another body under the same key.
    Altered,
    /// Its instance does not know the recipe of the record: nobody can say whether the body is the same.
    Stranger,
    /// It asks for another operation under the same key, which is across all of them.
    OtherOperation,
}

/// How much may happen in one run. Everything else is unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// Requests with the same body, by two clients that send again when they were answered or cut off.
    pub sends: u8,
    /// Requests of the third client.
    pub third_sends: u8,
    /// Processes that crash and forget.
    pub crashes: u8,
    /// Store calls whose answer never comes: carried out at once, later, or never.
    pub losses: u8,
    /// Store answers that come twice.
    pub doubles: u8,
    /// Heartbeats.
    pub beats: u8,
    /// Times that an operator looks into an unknown outcome.
    pub looks: u8,
    /// Remarks in the history. (Messages are delivered any number of times; what they leave in the history is all that counts them.)
    pub remarks: u8,
}

/// One configuration of the model.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it is called.
    pub name: &'static str,
    /// The rules of the operation.
    pub policy: Policy,
    /// How often the reconciler asks before it is a dead letter.
    pub polls: u32,
    /// Absence is proof: the provider refuses attempts up to n once it has said that it knows nothing of attempt n.
    pub absence_is_proof: bool,
    /// The provider carries one operation id out once.
    pub deduplicates: bool,
    /// The provider tells by itself what it knows, in messages.
    pub tells: bool,
    /// The provider may decline for good.
    pub declines: bool,
    /// Windows end, and the reaper comes by.
    pub expiry: bool,
    /// Owners may find out, before they call anybody, that nothing is to be done.
    pub gives_up: bool,
    /// What the third client does.
    pub third: Third,
    /// How much may happen.
    pub bounds: Bounds,
}

const SOON: Duration = Duration::from_millis(10);

/// The policy that all configurations start from: doubt is asked about at once.
fn policy(stale: Stale, expired: Expired) -> Policy {
    Policy {
        lease: SOON,
        retention: SOON * 2,
        body_retention: SOON * 2,
        tombstone: SOON,
        expired,
        stale,
        settling: Settling::Poll { first: Duration::ZERO },
        ..Policy::default()
    }
}

impl Config {
    fn new(name: &'static str, stale: Stale, expired: Expired, bounds: Bounds) -> Self {
        Self {
            name,
            policy: policy(stale, expired),
            polls: 1,
            absence_is_proof: false,
            deduplicates: false,
            tells: true,
            declines: false,
            expiry: false,
            gives_up: true,
            third: Third::Altered,
            bounds,
        }
    }

    /// `stale = "unknown"`, a provider that can be asked but promises nothing by its silence.
    #[must_use]
    pub fn doubt(bounds: Bounds) -> Self {
        Self { declines: true, ..Self::new("doubt", Stale::Unknown, Expired::Refuse, bounds) }
    }

    /// `stale = "unknown"`, and absence is proof.
    #[must_use]
    pub fn absence(bounds: Bounds) -> Self {
        Self { absence_is_proof: true, ..Self::new("absence", Stale::Unknown, Expired::Refuse, bounds) }
    }

    /// `stale = "resume"`: a recovery point, and a provider that carries one operation id out once.
    #[must_use]
    pub fn resume(bounds: Bounds) -> Self {
        let absence_is_proof = true;
        Self {
            deduplicates: true,
            absence_is_proof,
            ..Self::new("resume", Stale::Resume, Expired::Refuse, bounds)
        }
    }

    /// `stale = "rerun"`: the effect is in the completing transaction.
    #[must_use]
    pub fn rerun(bounds: Bounds) -> Self {
        Self { third: Third::Stranger, ..Self::new("rerun", Stale::Rerun, Expired::Refuse, bounds) }
    }

    /// Windows that end, the reaper, and an expired key that is refused until its tombstone goes.
    #[must_use]
    pub fn expiry_refused(bounds: Bounds) -> Self {
        let mut config = Self::new("expiry, refused", Stale::Unknown, Expired::Refuse, bounds);
        config.policy.body_retention = SOON;
        Self { expiry: true, ..config }
    }

    /// Windows that end, the reaper, and an expired key that is new work, but for another operation.
    #[must_use]
    pub fn expiry_new(bounds: Bounds) -> Self {
        let third = Third::OtherOperation;
        Self { expiry: true, third, ..Self::new("expiry, new", Stale::Unknown, Expired::New, bounds) }
    }

    /// What a test has time for.
    #[must_use]
    pub fn small() -> [Self; 6] {
        let bounds = Bounds {
            sends: 2,
            third_sends: 1,
            crashes: 1,
            losses: 1,
            doubles: 0,
            beats: 0,
            looks: 1,
            remarks: 0,
        };
        // Windows multiply everything: lost answers, and owners that give up before they begin, are left to the others. So are
        // messages where expired keys are refused: what they tell of an earlier operation is the same where such keys are new.
        let windows = Bounds { losses: 0, ..bounds };
        let windowed = |config| Self { gives_up: false, ..config };
        [
            Self::doubt(Bounds { doubles: 1, ..bounds }),
            Self::absence(bounds),
            Self::resume(bounds),
            Self::rerun(bounds),
            Self { tells: false, ..windowed(Self::expiry_refused(windows)) },
            windowed(Self::expiry_new(windows)),
        ]
    }

    /// Three clients, two crashes, lost, late and doubled answers, a reconciler and an operator, all at once everywhere; the
    /// reaper where windows end, heartbeats where they do not.
    #[must_use]
    pub fn large() -> [Self; 6] {
        let bounds = Bounds {
            sends: 2,
            third_sends: 1,
            crashes: 2,
            losses: 1,
            doubles: 1,
            beats: 1,
            looks: 1,
            remarks: 0,
        };
        let windows = Bounds { beats: 0, ..bounds };
        [
            Self::doubt(Bounds { sends: 3, losses: 2, ..bounds }),
            Self::absence(Bounds { losses: 2, ..bounds }),
            Self::resume(Bounds { losses: 2, ..bounds }),
            Self::rerun(Bounds { sends: 3, ..bounds }),
            Self::expiry_refused(windows),
            Self::expiry_new(windows),
        ]
    }
}
