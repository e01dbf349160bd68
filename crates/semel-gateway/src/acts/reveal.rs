//! Showing what is hidden: the client's key, and the stored answer.

use super::statement::sum_of;
use super::{ActError, Acts, Operator, Seen};
use crate::identity::Role;
use semel::audit::AuditAction;
use semel::{OperationId, Record, StoredResponse};

/// What was hidden of an operation.
#[derive(Clone, Debug)]
pub struct Revealed {
    /// The operation, with the whole key that the client sent.
    pub seen: Seen,
    /// The stored answer, unsealed; `None` without one.
    pub response: Option<StoredResponse>,
}

impl Acts {
    /// Shows the stored answer and the whole key of an operation. It is in the audit before it is returned: what cannot be written down is not shown.
    ///
    /// # Errors
    /// The role or the tenant does not allow it, the audit cannot be written, or the answer does not open.
    pub async fn reveal(&self, operator: &Operator, id: OperationId) -> Result<Revealed, ActError> {
        let (found, seen) = self.revealing(operator, id).await?;
        let response = self.engine.open(found)?.response;
        let mut entry = self.about(operator, AuditAction::Reveal, &seen.record);
        let (sha256, bytes) = response.as_ref().and_then(sum_of).unzip();
        (entry.details.response_sha256, entry.details.response_bytes) = (sha256, bytes);
        entry.details.note = Some("key and response".into());
        self.note(entry).await?;
        Ok(Revealed { seen, response })
    }

    /// Shows the whole key alone, by the same rules.
    ///
    /// # Errors
    /// As [`reveal`](Self::reveal).
    pub async fn reveal_key(&self, operator: &Operator, id: OperationId) -> Result<Seen, ActError> {
        let (_, seen) = self.revealing(operator, id).await?;
        let mut entry = self.about(operator, AuditAction::Reveal, &seen.record);
        entry.details.note = Some("key".into());
        self.note(entry).await?;
        Ok(seen)
    }

    /// The record as it is stored, and as it is shown.
    async fn revealing(&self, operator: &Operator, id: OperationId) -> Result<(Record, Seen), ActError> {
        self.require(operator, Role::Operator, AuditAction::Reveal, Some(id.to_string())).await?;
        let seen = self.seen(operator, id).await?;
        // Found again, for the answer is sealed to the record as it is stored.
        let (_, found) = self.engine.find(id).await?;
        Ok((found.ok_or(ActError::NoSuchOperation)?, seen))
    }
}
