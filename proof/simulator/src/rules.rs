//! The operations of a run, and the rules of each: every kind of policy, drawn for every run.

use crate::dice::Dice;
use semel::{Expired, InFlight, Policy, Settling, Stale, StoreResponse};
use semel_tower::Protection;
use std::sync::Arc;
use std::time::Duration;

/// Who does the work of an operation, and what can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// A service behind the gateway. The provider deduplicates where the policy lets another attempt resume.
    Service,
    /// A handler in the process, by phases. The provider promises nothing.
    AtMostOnce,
    /// By phases; the provider deduplicates by the identity.
    Deduplicated,
    /// By phases; the provider can be asked, and refuses what it said "not found" of.
    Queryable,
    /// The one effect is in the completing transaction.
    Transaction,
}

impl Work {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::AtMostOnce => "at most once",
            Self::Deduplicated => "deduplicated",
            Self::Queryable => "queryable",
            Self::Transaction => "transaction",
        }
    }
}

/// The phase that pays, and the one that may follow it.
pub(crate) const PAYMENT: &str = "charged";
pub(crate) const RECEIPT: &str = "receipt";

/// Whether the payment is behind this recovery point: it is never made again.
pub(crate) fn is_past_payment(point: Option<&str>) -> bool {
    point.is_some_and(|point| point == PAYMENT || point.starts_with(RECEIPT))
}

/// One operation, and its rules.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) work: Work,
    pub(crate) protection: Arc<Protection>,
    /// What another configuration has in its place.
    pub(crate) other: Arc<Protection>,
    /// How many questions are asked, and how far apart the first ones are; `None`: nobody is asked.
    pub(crate) polls: Option<(u32, Duration)>,
    /// Whether the provider tells by webhook.
    pub(crate) webhooks: bool,
    /// Whether a second phase, a receipt, follows on the one that pays.
    pub(crate) receipt: bool,
}

impl Rule {
    pub(crate) fn policy(&self) -> &Policy {
        &self.protection.policy
    }

    /// Of both configurations. What work means is the same in both: what becomes of doubt, and of keys whose window is over.
    pub(crate) fn policies(&self) -> [&Policy; 2] {
        [&self.protection.policy, &self.other.policy]
    }

    /// What is in force in one of the configurations.
    pub(crate) fn in_force(&self, other: bool) -> &Arc<Protection> {
        if other { &self.other } else { &self.protection }
    }

    /// Whether the provider carries one operation out once, however often it is asked.
    pub(crate) fn deduplicates(&self) -> bool {
        self.work == Work::Deduplicated
            || (self.work == Work::Service && self.policy().stale == Stale::Resume)
    }

    /// Whether another attempt may go on from one of which nobody knows what it did.
    pub(crate) fn takes_over(&self) -> bool {
        self.policy().stale != Stale::Unknown
    }

    /// Some operations, with rules of their own each.
    pub(crate) fn draw(dice: &Dice) -> Vec<Self> {
        let count = 3 + dice.below(6);
        (0..count).map(|number| Self::one(number, dice)).collect()
    }

    fn one(number: u64, dice: &Dice) -> Self {
        let all = [
            Work::Service,
            Work::Service,
            Work::Service,
            Work::AtMostOnce,
            Work::Deduplicated,
            Work::Queryable,
            Work::Transaction,
        ];
        let work = dice.pick(&all);
        let stale = match work {
            Work::Service => dice.pick(&[Stale::Unknown, Stale::Unknown, Stale::Resume]),
            Work::Transaction => Stale::Rerun,
            Work::AtMostOnce | Work::Deduplicated | Work::Queryable => {
                dice.pick(&[Stale::Unknown, Stale::Resume])
            }
        };
        let lease = dice.millis(3_000, 20_000);
        let every = dice.millis(500, 3_000);
        let (settling, polls, webhooks) = match dice.below(4) {
            0 => (Settling::Operator, None, false),
            1 => (Settling::Webhook, None, true),
            2 => (
                Settling::Poll { first: every },
                Some((2 + u32::try_from(dice.below(4)).unwrap_or(0), every)),
                true,
            ),
            _ => (
                Settling::Poll { first: every },
                Some((3 + u32::try_from(dice.below(5)).unwrap_or(0), every)),
                false,
            ),
        };
        // What nobody but the completing transaction knows, nobody outside can tell.
        let (settling, polls, webhooks) = if work == Work::Transaction {
            (Settling::Operator, None, false)
        } else {
            (settling, polls, webhooks)
        };
        let is_short = dice.chance(0.4);
        let retention = if is_short { dice.millis(5_000, 40_000) } else { Duration::from_secs(6 * 60 * 60) };
        let policy = Policy {
            lease,
            retention,
            body_retention: if dice.chance(0.2) { retention / 2 } else { retention },
            tombstone: if is_short { dice.millis(10_000, 60_000) } else { Duration::from_secs(24 * 60 * 60) },
            expired: dice.pick(&[Expired::Refuse, Expired::New]),
            stale,
            in_flight: in_flight(dice),
            settling,
            store_response: if dice.chance(0.15) { StoreResponse::Reference } else { StoreResponse::Full },
        };
        let by_phases = matches!(work, Work::AtMostOnce | Work::Deduplicated | Work::Queryable);
        // No key is remembered for less time than by the first: the clock may step by a part of that.
        let other = Policy {
            lease: lease.mul_f64(if dice.chance(0.5) { 1.5 } else { 0.75 }),
            retention: retention * 2,
            body_retention: policy.body_retention * 2,
            in_flight: in_flight(dice),
            store_response: dice.pick(&[policy.store_response, StoreResponse::Full]),
            ..policy.clone()
        };
        Self {
            name: format!("operation-{number}"),
            work,
            protection: protection(policy),
            other: protection(other),
            polls,
            webhooks,
            receipt: by_phases && dice.chance(0.5),
        }
    }
}

fn in_flight(dice: &Dice) -> InFlight {
    match dice.below(3) {
        0 => InFlight::Conflict,
        1 => InFlight::Accepted,
        _ => InFlight::Wait(dice.millis(200, 2_000)),
    }
}

fn protection(policy: Policy) -> Arc<Protection> {
    let timeout = policy.lease.mul_f64(0.8);
    Arc::new(Protection { policy: Arc::new(policy), timeout, ..Protection::default() })
}
