//! The way of a handler through its phases.

use super::operation::Operation;
use semel::{OutOfStep, Phases};

/// Why an operation has no phases to go through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PhasesError {
    /// The operation was finished before.
    #[error("the operation is already finished")]
    Finished,
    /// What an earlier attempt left cannot be read.
    #[error(transparent)]
    OutOfStep(#[from] OutOfStep),
}

impl Operation {
    /// The phases of the operation, for a handler with effects outside: each commits a recovery point, and a later attempt goes on
    /// after the last one. Once they are done, the operation is completed as always.
    ///
    /// # Errors
    /// The operation was finished before, or what an earlier attempt left cannot be read.
    pub fn phases(&self) -> Result<Phases, PhasesError> {
        let slot = self.slot();
        let ticket = slot.ticket.as_ref().ok_or(PhasesError::Finished)?;
        Ok(ticket.phases()?)
    }
}
