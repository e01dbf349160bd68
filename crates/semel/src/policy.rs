//! The rules of an operation: how long things last, and what doubt leads to.

use crate::record::{Body, StoredResponse};
use alloc::vec::Vec;
use core::time::Duration;

/// What happens when a request finds the owner's lease expired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Stale {
    /// The outcome becomes unknown until there is evidence. Right for every operation.
    #[default]
    Unknown,
    /// One new owner resumes after the last recovery point. Right only where the operation is built of recovery points,
    /// or the service promises as much by operation id and attempt.
    Resume,
    /// One new owner runs it again. Right only where every effect is in the completing transaction itself, so that the old
    /// owner's late transaction fails on the owner check and rolls back.
    Rerun,
}

/// What happens to a key that is used again after its window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Expired {
    /// Refused, while the tombstone lasts.
    #[default]
    Refuse,
    /// New work.
    New,
}

/// What a request gets while another one executes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum InFlight {
    /// 409 with Retry-After, at once.
    #[default]
    Conflict,
    /// 202 with Retry-After, at once.
    Accepted,
    /// The first one's answer, if it comes within this time; else 409.
    Wait(Duration),
}

/// How doubt is settled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Settling {
    /// By an operator alone: an unknown outcome is a dead letter at once.
    #[default]
    Operator,
    /// By a webhook; nothing polls.
    Webhook,
    /// By polls.
    Poll {
        /// How long after the doubt arose the first poll is sent.
        first: Duration,
    },
}

/// What of a response is kept for retries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StoreResponse {
    /// Status, kept headers and body: retries get the same bytes.
    #[default]
    Full,
    /// The resource's type and id alone: retries learn that the answer was not stored, and where to look.
    Reference,
}

impl StoreResponse {
    /// The part of an answer that is kept.
    #[must_use]
    pub fn kept(self, response: StoredResponse) -> StoredResponse {
        match self {
            Self::Full => response,
            Self::Reference => StoredResponse { body: Body::NotStored, headers: Vec::new(), ..response },
        }
    }
}

/// The rules of one operation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How long an owner is believed to be alive without a heartbeat. Default 30 s; heartbeats are sent every third of it.
    pub lease: Duration,
    /// How long a final state is replayed, from the moment that it was reached. Default 24 h.
    pub retention: Duration,
    /// How long the stored body is kept; no longer than `retention` counts. Default 24 h.
    pub body_retention: Duration,
    /// How long an expired key is remembered after its window. Default 7 days; [`Duration::MAX`] is for ever.
    pub tombstone: Duration,
    /// What an expired key gets. Default: refused.
    pub expired: Expired,
    /// What follows an expired lease. Default: unknown.
    pub stale: Stale,
    /// What a duplicate gets while the first executes. Default: 409.
    pub in_flight: InFlight,
    /// How doubt is settled. Default: by an operator.
    pub settling: Settling,
    /// What is kept of the response. Default: all of it.
    pub store_response: StoreResponse,
}

impl Policy {
    /// How long a key is sure to be remembered from its final state on: what keeps a retry from executing. A key that is new work after its window
    /// is remembered for the window alone.
    #[must_use]
    pub const fn remembered(&self) -> Duration {
        match self.expired {
            Expired::Refuse => self.retention.saturating_add(self.tombstone),
            Expired::New => self.retention,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        const HOUR: u64 = 60 * 60;
        Self {
            lease: Duration::from_secs(30),
            retention: Duration::from_secs(24 * HOUR),
            body_retention: Duration::from_secs(24 * HOUR),
            tombstone: Duration::from_secs(7 * 24 * HOUR),
            expired: Expired::default(),
            stale: Stale::default(),
            in_flight: InFlight::default(),
            settling: Settling::default(),
            store_response: StoreResponse::default(),
        }
    }
}
