//! Settling doubt, and asking about it now.

use super::statement::{Checked, Statement};
use super::{ActError, Acts, MovedOn, Operator, Seen, of_a_write};
use crate::identity::Role;
use semel::audit::{AuditAction, AuditEntry, AuditResult};
use semel::transition::{About, Refusal, Settlement, Windows};
use semel::{
    Acted, Actor, Draft, OperationId, OperatorTerms, Owner, Policy, Record, Settling, StoreError, Timestamp,
};
use std::sync::Arc;

impl Acts {
    /// Settles doubt on an operator's word. The audit is written in the same commit; what is refused is written down too.
    ///
    /// It goes on if the future is dropped: an operator who hangs up must not leave it half told.
    ///
    /// # Errors
    /// Why nothing was changed, or ([`ActError::Unknown`]) that it is unknown whether it is settled.
    pub async fn settle(
        &self,
        operator: &Operator,
        id: OperationId,
        statement: Statement,
    ) -> Result<Seen, ActError> {
        self.settle_as(AuditAction::Settle, operator, id, statement).await
    }

    /// The same as one item of a list.
    pub(crate) async fn settle_as(
        &self,
        action: AuditAction,
        operator: &Operator,
        id: OperationId,
        statement: Statement,
    ) -> Result<Seen, ActError> {
        self.require(operator, Role::Operator, action, Some(id.to_string())).await?;
        let seen = self.seen(operator, id).await?;
        let policy = (self.policies)(&seen.record.key.operation);
        let checked = statement.checked(policy.store_response);
        let checked = checked.map_err(|error| ActError::Invalid(error.to_string()))?;
        if checked.lacks_attempt() {
            let outcome = checked.outcome.as_str();
            return Err(ActError::AttemptMissing { outcome, seen: Box::new(seen) });
        }
        let settling = SettlingTask {
            acts: self.clone(),
            operator: operator.clone(),
            template: self.about(operator, action, &seen.record),
            about: About { operation_id: id, attempt: checked.attempt },
            policy,
            checked,
        };
        let settled = tokio::spawn(settling.run()).await;
        settled.map_err(|error| ActError::Unknown(error.to_string())).flatten()
    }

    /// Has an operation in doubt asked about at once, a dead letter too. A worker does it within a second or so, wherever it runs.
    ///
    /// # Errors
    /// Why nothing was changed, or ([`ActError::Unknown`]) that it is unknown whether it will be asked about.
    pub async fn poll_now(
        &self,
        operator: &Operator,
        id: OperationId,
        version: Option<u64>,
    ) -> Result<Seen, ActError> {
        self.require(operator, Role::Operator, AuditAction::Poll, Some(id.to_string())).await?;
        let seen = self.seen(operator, id).await?;
        let policy = (self.policies)(&seen.record.key.operation);
        if !matches!(policy.settling, Settling::Poll { .. }) {
            return Err(ActError::NotPolled);
        }
        let (acts, operator) = (self.clone(), operator.clone());
        let asking = tokio::spawn(async move {
            let template = acts.about(&operator, AuditAction::Poll, &seen.record);
            let audited = |before: &Record, after: &Draft| changed(template.clone(), before, after);
            let terms = OperatorTerms { version, after_lease: false };
            let acted = acts.engine.ask_now_audited(id, terms, &audited).await;
            acts.told(template.clone(), acted, seen.now).await
        });
        asking.await.map_err(|error| ActError::Unknown(error.to_string())).flatten()
    }

    /// An entry about an act on this record.
    pub(super) fn about(&self, operator: &Operator, action: AuditAction, record: &Record) -> AuditEntry {
        let mut entry = self.entry(operator, action);
        entry.target = Some(record.operation_id.to_string());
        entry.tenant = Some(record.key.tenant.to_string());
        entry.operation = Some(record.key.operation.to_string());
        entry.details.attempt = Some(record.attempt);
        entry.details.version_before = Some(record.version);
        entry.details.state_before = Some(record.state.as_str().into());
        entry
    }

    /// What an act came to. Refusals are written down.
    async fn told(
        &self,
        template: AuditEntry,
        acted: Result<Acted, StoreError>,
        now: Timestamp,
    ) -> Result<Seen, ActError> {
        let (why, record) = match acted.map_err(of_a_write) {
            Ok(Acted::Done(record)) => {
                let (action, actor) = (template.action.as_str(), template.actor);
                tracing::info!(operation_id = %record.operation_id, action, actor, state = record.state.as_str(), "an operator acted");
                return Ok(self.shown(*record, now).await);
            }
            Ok(Acted::Moved(record)) => (MovedOn::OtherVersion, record),
            Ok(Acted::Refused(Refusal::OtherAttempt, record)) => (MovedOn::OtherAttempt, record),
            Ok(Acted::Refused(Refusal::LeaseRunning, record)) => (MovedOn::LeaseRunning, record),
            Ok(Acted::Refused(_, record)) => (MovedOn::NotUnknown, record),
            Ok(_) => return Err(ActError::NoSuchOperation),
            Err(error) => {
                if let ActError::Unknown(lost) = &error {
                    let target = template.target.as_deref().unwrap_or_default();
                    tracing::error!(
                        operation_id = target,
                        lost,
                        "the store's answer was lost: an operator's act may or may not be done"
                    );
                }
                return Err(error);
            }
        };
        let mut entry = template;
        entry.result = AuditResult::Refused;
        entry.details.refusal = Some(why.code().into());
        entry.details.version_before = Some(record.version);
        entry.details.state_before = Some(record.state.as_str().into());
        if let Err(error) = self.note(entry).await {
            tracing::error!(%error, "a refused act is missing in the audit");
        }
        Err(ActError::Moved { why, seen: Box::new(self.shown(*record, now).await) })
    }
}

/// The entry, with what the change does to the record.
fn changed(mut entry: AuditEntry, before: &Record, after: &Draft) -> AuditEntry {
    let details = &mut entry.details;
    details.attempt = Some(before.attempt);
    details.version_before = Some(before.version);
    details.version_after = Some(after.version);
    details.state_before = Some(before.state.as_str().into());
    details.state_after = Some(after.state.as_str().into());
    entry
}

/// A settlement on a task of its own.
struct SettlingTask {
    acts: Acts,
    operator: Operator,
    template: AuditEntry,
    about: About,
    policy: Arc<Policy>,
    checked: Checked,
}

impl SettlingTask {
    async fn run(self) -> Result<Seen, ActError> {
        let Self { acts, operator, mut template, about, policy, checked } = self;
        let (sha256, bytes) = checked.response_sum().unzip();
        let details = &mut template.details;
        details.outcome = Some(checked.outcome.as_str().into());
        details.reason = Some(checked.reason.clone());
        details.ticket.clone_from(&checked.ticket);
        details.note = checked.claimed.map(|name| format!("claims to be {name}"));
        (details.response_sha256, details.response_bytes) = (sha256, bytes);
        let settlement = Settlement {
            settler: Owner::random(),
            actor: Actor::Operator(operator.identity.to_string()),
            evidence: checked.evidence,
            note: Some(checked.reason),
            windows: Windows::from(&*policy),
        };
        let terms = OperatorTerms { version: checked.version, after_lease: checked.after_lease };
        let audited = |before: &Record, after: &Draft| changed(template.clone(), before, after);
        let (now, _) = acts.engine.find(about.operation_id).await?;
        let acted = acts.engine.settle_audited(&about, &settlement, terms, &audited).await;
        acts.told(template.clone(), acted, now).await
    }
}
