//! What an operator states about an unknown outcome, checked: what is settled wrongly cannot be settled again.

use super::reason::{self, InvalidReason};
use semel::transition::Evidence;
use semel::{Body, Resource, StoreResponse, StoredResponse};
use semel_worker::{InvalidDocument, ResourceDocument, ResponseDocument, Unkeepable};
use sha2::{Digest, Sha256};

/// The outcome of an operation, as an operator states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stated {
    /// It happened.
    Completed,
    /// It was refused for good.
    Failed,
    /// It did not happen and cannot happen any more.
    NotExecuted,
}

impl Stated {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Completed, Self::Failed, Self::NotExecuted];

    /// Its name, as the API and the audit spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NotExecuted => "not_executed",
        }
    }

    /// The outcome of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stated| stated.as_str() == name)
    }
}

/// What an operator states.
#[derive(Clone)]
pub struct Statement {
    /// The outcome.
    pub outcome: Stated,
    /// The attempt that was looked into. Required with [`Failed`](Stated::Failed) and [`NotExecuted`](Stated::NotExecuted).
    pub attempt: Option<u32>,
    /// The version that was looked at: if the record was written since, nothing is done.
    pub version: Option<u64>,
    /// Whether [`NotExecuted`](Stated::NotExecuted) is refused while the lease runs. The console and bulk acts say so.
    pub after_lease: bool,
    /// How the operator knows.
    pub reason: String,
    /// Where else it is written about.
    pub ticket: Option<String>,
    /// Who it claims to come from, where several people share a token.
    pub claimed: Option<String>,
    /// The answer for retries.
    pub response: Option<ResponseDocument>,
    /// The resource that was created.
    pub resource: Option<ResourceDocument>,
}

/// Why a statement is invalid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidStatement {
    #[error(transparent)]
    Word(#[from] InvalidReason),
    #[error(
        "`response` and `resource` are allowed with completed and failed only; after not_executed the next request \
         executes, and its own answer counts"
    )]
    NothingToKeep,
    #[error(transparent)]
    Resource(InvalidDocument),
    #[error("`response`: {0}")]
    Response(InvalidDocument),
}

/// A statement that was checked.
pub(crate) struct Checked {
    pub(crate) evidence: Evidence,
    pub(crate) outcome: Stated,
    pub(crate) attempt: Option<u32>,
    pub(crate) version: Option<u64>,
    pub(crate) after_lease: bool,
    pub(crate) reason: String,
    pub(crate) ticket: Option<String>,
    pub(crate) claimed: Option<String>,
}

impl Checked {
    /// Whether it would have to say of which attempt it is true. It has no default: the current attempt need not be the one that the
    /// operator looked into.
    pub(crate) fn lacks_attempt(&self) -> bool {
        self.attempt.is_none() && self.outcome != Stated::Completed
    }

    /// The SHA-256 of the body that was given, and its length.
    pub(crate) fn response_sum(&self) -> Option<(String, u64)> {
        let (Evidence::Completed { response, .. } | Evidence::Failed { response, .. }) = &self.evidence
        else {
            return None;
        };
        response.as_ref().and_then(sum_of)
    }
}

/// The SHA-256 of a stored body in hexadecimal, and its length.
pub(crate) fn sum_of(response: &StoredResponse) -> Option<(String, u64)> {
    let Body::Stored(bytes) = &response.body else { return None };
    let hex = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Some((hex, bytes.len() as u64))
}

impl Statement {
    /// What it says, checked, and reduced to what the operation's rules keep of an answer.
    pub(crate) fn checked(self, keep: StoreResponse) -> Result<Checked, InvalidStatement> {
        let (reason, claimed) = (reason::reason(&self.reason)?, reason::operator(self.claimed)?);
        let ticket = reason::ticket(self.ticket)?;
        let response = self.response.map(|given| given.stored(Unkeepable::Refused));
        let response = response.transpose().map_err(InvalidStatement::Response)?;
        let response = response.map(|given| keep.kept(given));
        let resource = self.resource.map(Resource::try_from);
        let resource = resource.transpose().map_err(InvalidStatement::Resource)?;
        let evidence = match self.outcome {
            Stated::Completed => Evidence::Completed { response, resource },
            Stated::Failed => Evidence::Failed { response, resource },
            Stated::NotExecuted if response.is_some() || resource.is_some() => {
                return Err(InvalidStatement::NothingToKeep);
            }
            Stated::NotExecuted => Evidence::NotExecuted,
        };
        Ok(Checked {
            evidence,
            outcome: self.outcome,
            attempt: self.attempt,
            version: self.version,
            after_lease: self.after_lease,
            reason,
            ticket,
            claimed,
        })
    }
}
