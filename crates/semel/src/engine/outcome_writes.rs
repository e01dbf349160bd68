//! The owner's writes that hold something to keep: what is kept is sealed here, and nowhere else.

use super::outcome::Outcome;
use crate::policy::Policy;
use crate::record::{Record, StoredResponse};
use crate::seal::Sealer;
use crate::store::StoreError;
use crate::transition::{Act, Windows};
use bytes::Bytes;
use std::sync::Arc;

/// Makes the owner's writes on one operation, as its policy has them and sealed by the engine's key: for code that writes them in a
/// transaction of its own. From [`Ticket::writes`](super::Ticket::outcome_writes) or [`Engine::writes`](super::Engine::outcome_writes).
#[derive(Clone)]
pub struct OutcomeWrites {
    pub(super) policy: Arc<Policy>,
    sealer: Sealer,
}

impl OutcomeWrites {
    pub(super) fn new(policy: &Arc<Policy>, sealer: Sealer) -> Self {
        Self { policy: Arc::clone(policy), sealer }
    }

    /// The act that writes this outcome.
    #[must_use]
    pub fn act(&self, outcome: Outcome) -> Act {
        let windows = Windows::from(&*self.policy);
        let kept = |response: Option<StoredResponse>| {
            response.map(|response| self.sealer.response(self.policy.store_response.kept(response)))
        };
        match outcome {
            Outcome::Completed { response, resource } => {
                Act::Complete { response: kept(response), resource, windows }
            }
            Outcome::Failed { response, resource } => {
                Act::Fail { response: kept(response), resource, windows }
            }
            Outcome::Retryable { error } => Act::Retryable { error, windows },
            Outcome::Released => Act::Release { windows },
            Outcome::Unknown { error } => Act::Doubt { error, settling: self.policy.settling },
        }
    }

    /// The act that commits a recovery point.
    pub(super) fn advance(&self, point: String, checkpoint: Option<Bytes>) -> Act {
        let checkpoint = checkpoint.map(|checkpoint| self.sealer.checkpoint(&point, checkpoint));
        Act::Advance { point, checkpoint, lease: self.policy.lease }
    }

    /// What `record`, which is the operation's, has at its recovery point.
    pub(super) fn checkpoint_of(&self, record: &Record) -> Result<Option<Bytes>, StoreError> {
        self.sealer.checkpoint_of(record)
    }
}
