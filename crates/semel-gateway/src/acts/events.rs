//! What an operator does about events that their receiver refuses.

use super::reason::{self, InvalidReason};
use super::{ActError, Acts, Operator, of_a_write};
use crate::identity::Role;
use semel::audit::{AuditAction, AuditEntry};
use semel::{Access, StoreError};
use semel_events::outbox::{Entry, OutboxAdmin, Touched};
use std::sync::Arc;
use uuid::Uuid;

impl Acts {
    /// The outbox, for users who see all tenants: events have no tenant that a limit could be held against.
    ///
    /// # Errors
    /// The user is limited to some tenants, or there is no outbox.
    pub fn outbox(&self, operator: &Operator) -> Result<Arc<dyn OutboxAdmin>, ActError> {
        if operator.identity.tenants.is_limited() {
            return Err(ActError::Limited);
        }
        self.outbox.clone().ok_or(ActError::NoOutbox)
    }

    /// Sends a dead letter on its way again. The audit is written in the same commit.
    ///
    /// # Errors
    /// Why nothing was changed, or ([`ActError::Unknown`]) that it is unknown whether it was.
    pub async fn requeue(&self, operator: &Operator, event: Uuid) -> Result<Entry, ActError> {
        let entry = self.begun(operator, Role::Operator, AuditAction::Republish, event).await?;
        let (outbox, limit) = (self.outbox(operator)?, self.engine.store_timeout());
        // On a task of its own: an operator who hangs up must not leave it half told.
        let acting = tokio::spawn(async move {
            semel::bounded(Access::Write, limit, outbox.requeue(event, Some(entry))).await
        });
        touched(acting.await, event)
    }

    /// Takes a dead letter out, with a reason that is kept. The audit is written in the same commit. `claimed`: the name of the operator, where
    /// several people share a token.
    ///
    /// # Errors
    /// Why nothing was changed, or ([`ActError::Unknown`]) that it is unknown whether it was.
    pub async fn drop_event(
        &self,
        operator: &Operator,
        event: Uuid,
        reason: &str,
        claimed: Option<String>,
    ) -> Result<Entry, ActError> {
        let mut entry = self.begun(operator, Role::Admin, AuditAction::Drop, event).await?;
        let invalid = |error: InvalidReason| ActError::Invalid(error.to_string());
        let (reason, claimed) =
            (reason::reason(reason).map_err(invalid)?, reason::operator(claimed).map_err(invalid)?);
        entry.details.note = claimed.map(|name| format!("claims to be {name}"));
        entry.details.reason = Some(reason.clone());
        let (outbox, limit) = (self.outbox(operator)?, self.engine.store_timeout());
        let by = operator.identity.to_string();
        let acting = tokio::spawn(async move {
            semel::bounded(Access::Write, limit, outbox.discard(event, by, reason, Some(entry))).await
        });
        touched(acting.await, event)
    }

    async fn begun(
        &self,
        operator: &Operator,
        needed: Role,
        action: AuditAction,
        event: Uuid,
    ) -> Result<AuditEntry, ActError> {
        self.require(operator, needed, action, Some(event.to_string())).await?;
        let mut entry = self.entry(operator, action);
        entry.target = Some(event.to_string());
        Ok(entry)
    }
}

fn touched(
    acted: Result<Result<Touched, StoreError>, tokio::task::JoinError>,
    event: Uuid,
) -> Result<Entry, ActError> {
    match acted.map_err(|error| StoreError::Lost(error.to_string())).flatten().map_err(of_a_write) {
        Ok(Touched::Done(entry)) => {
            tracing::info!(event_id = %event, "an operator changed an event of the outbox");
            Ok(*entry)
        }
        Ok(Touched::NotRefused(entry)) => Err(ActError::NotDeadLetter(entry)),
        Ok(Touched::Missing) => Err(ActError::NoSuchEvent),
        Err(error) => {
            if let ActError::Unknown(lost) = &error {
                tracing::error!(event_id = %event, lost, "the store's answer was lost: an operator's change may or may not be stored");
            }
            Err(error)
        }
    }
}
