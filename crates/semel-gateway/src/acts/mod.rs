//! What operators do: settle doubt, ask about it now, requeue and drop events, reload, and look at what is hidden.
//!
//! One place for the admin API and the console: each act checks role and tenant, acts, and writes the audit. A change of the store and its entry
//! are one commit; what is refused or shown is in the audit before the answer goes out.

mod dry_run;
mod error;
mod events;
mod operator;
mod reason;
mod reveal;
mod settle;
mod statement;

pub use dry_run::{DryRun, NextRetry};
pub use error::{ActError, MovedOn, Seen};
pub use operator::{Operator, Via};
pub use reveal::Revealed;
#[cfg(test)]
pub(crate) use statement::Checked;
pub use statement::{Stated, Statement};

use crate::identity::Role;
use crate::reload::{Reload, Reloaded};
use semel::audit::{AuditAction, AuditCursor, AuditEntry, AuditFilter, AuditPage, AuditResult};
use semel::{Engine, OperationId, Policy, Record, StoreError, Timestamp};
use semel_events::outbox::OutboxAdmin;
use semel_tower::IdempotencyLayer;
use std::sync::Arc;

/// The rules of the operation of this name: they say how long what is settled is kept.
pub type Policies = Arc<dyn Fn(&str) -> Arc<Policy> + Send + Sync>;

/// What operators can do. Cheap to clone.
#[derive(Clone)]
pub struct Acts {
    /// The engine whose records are shown and settled.
    pub engine: Engine,
    /// The rules of each operation.
    pub policies: Policies,
    /// What waits to be told to others; `None`: the store has no outbox.
    pub outbox: Option<Arc<dyn OutboxAdmin>>,
    /// Triggers a reload; `None` without a config file.
    pub reload: Option<Reload>,
    /// What answers clients: for dry runs.
    pub layer: IdempotencyLayer,
    /// What the audit calls this process.
    pub instance: Arc<str>,
}

impl Acts {
    /// An entry of the audit about what an operator does here.
    #[must_use]
    pub fn entry(&self, operator: &Operator, action: AuditAction) -> AuditEntry {
        let mut entry = operator.entry(action);
        entry.details.instance = Some(self.instance.to_string());
        entry
    }

    /// Appends an entry that is about no change of a record: somebody signed in, exported, or froze a list.
    ///
    /// # Errors
    /// It is not in the audit: what it is about must not be done, or shown.
    pub async fn note(&self, entry: AuditEntry) -> Result<(), ActError> {
        let (action, actor, result) = (entry.action.as_str(), entry.actor.clone(), entry.result.as_str());
        self.engine.store().audit(entry, None).await?;
        tracing::info!(action, actor, result, "audit");
        Ok(())
    }

    /// Checks the role, and writes down that it does not suffice.
    ///
    /// # Errors
    /// [`ActError::Forbidden`].
    pub async fn require(
        &self,
        operator: &Operator,
        needed: Role,
        what: AuditAction,
        target: Option<String>,
    ) -> Result<(), ActError> {
        let had = operator.identity.role;
        if had >= needed {
            return Ok(());
        }
        let error = ActError::Forbidden { needed, had, actor: operator.identity.to_string() };
        self.denied(operator, what.as_str(), target, error.code()).await;
        Err(error)
    }

    /// Writes down that something was denied. Where even that cannot be written it is logged, and denied all the same.
    pub async fn denied(&self, operator: &Operator, what: &str, target: Option<String>, code: &'static str) {
        let mut entry = self.entry(operator, AuditAction::Denied);
        entry.result = AuditResult::Refused;
        entry.target = target;
        entry.details.refusal = Some(code.into());
        entry.details.note = Some(what.into());
        if let Err(error) = self.note(entry).await {
            tracing::error!(%error, actor = %operator.identity, what, "a denied act is missing in the audit");
        }
    }

    /// The operation, if this user may know of it. Whether another tenant has one of this id is not revealed.
    ///
    /// # Errors
    /// [`ActError::NoSuchOperation`], or the store failed.
    pub async fn seen(&self, operator: &Operator, id: OperationId) -> Result<Seen, ActError> {
        let (now, record) = self.engine.find(id).await?;
        let Some(record) = record else { return Err(ActError::NoSuchOperation) };
        if !operator.identity.tenants.allow(&record.key.tenant) {
            let target = Some(id.to_string());
            self.denied(operator, "operation of another tenant", target, "admin_other_tenant").await;
            return Err(ActError::NoSuchOperation);
        }
        Ok(self.shown(record, now).await)
    }

    /// The record with the key that the client sent. One that cannot be had does not hide the rest.
    pub async fn with_client_key(&self, mut record: Record) -> Record {
        match self.engine.client_key(&record).await {
            Ok(key) => record.key = key,
            Err(error) => {
                tracing::warn!(%error, "a client's key cannot be decrypted");
                record.key.key = "(sealed)".into();
            }
        }
        record
    }

    async fn shown(&self, record: Record, now: Timestamp) -> Seen {
        Seen { record: self.with_client_key(record).await, now }
    }

    /// Reloads the configuration. Written down before and after: a reload may change who may look at the audit.
    ///
    /// # Errors
    /// The role does not allow it, or the old configuration stays in force.
    pub async fn reload(&self, operator: &Operator) -> Result<Reloaded, ActError> {
        self.require(operator, Role::Admin, AuditAction::Reload, None).await?;
        let mut begun = self.entry(operator, AuditAction::Reload);
        begun.result = AuditResult::Begun;
        self.note(begun).await?;
        let reloaded = match &self.reload {
            None => Err(crate::reload::ReloadError::NoFile),
            Some(reload) => reload.now().await,
        };
        let mut entry = self.entry(operator, AuditAction::Reload);
        match &reloaded {
            Ok(reloaded) => entry.target = Some(reloaded.file.clone()),
            Err(error) => {
                entry.result = AuditResult::Refused;
                entry.details.refusal = Some(error.code().into());
            }
        }
        if let Err(error) = self.note(entry).await {
            tracing::error!(%error, "the result of a reload is missing in the audit");
        }
        Ok(reloaded?)
    }

    /// A page of the audit, newest first: for admins all of it, for others what is about operations that they may see.
    ///
    /// A page may have fewer entries than `limit`, or none, and still be followed by another one.
    ///
    /// # Errors
    /// The store failed.
    pub async fn audit(
        &self,
        operator: &Operator,
        filter: &AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> Result<AuditPage, ActError> {
        let identity = &operator.identity;
        if let Some(tenant) = &filter.tenant
            && !identity.tenants.allow(tenant)
        {
            return Ok(AuditPage { lines: Vec::new(), damaged: 0, next: None });
        }
        let store = self.engine.store();
        let sees_all = identity.role == Role::Admin && !identity.tenants.is_limited();
        if sees_all || filter.tenant.is_some() {
            return Ok(store.audited(filter.clone(), from, limit).await?);
        }
        let is_visible =
            |entry: &AuditEntry| entry.tenant.as_deref().is_some_and(|tenant| identity.tenants.allow(tenant));
        let mut page = AuditPage { lines: Vec::new(), damaged: 0, next: from };
        let mut examined = 0;
        loop {
            let read = store.audited(filter.clone(), page.next.clone(), READ_AT_ONCE).await?;
            let room = limit - page.lines.len();
            let beyond = read.lines.iter().enumerate().filter(|(_, line)| is_visible(&line.entry)).nth(room);
            let read = match beyond {
                // Read again up to the entry before it, so that the next page begins with it.
                Some((index, _)) if index > 0 => {
                    store.audited(filter.clone(), page.next.clone(), index).await?
                }
                _ => read,
            };
            examined += read.lines.len() + read.damaged;
            page.lines.extend(read.lines.into_iter().filter(|line| is_visible(&line.entry)).take(room));
            page.next = read.next;
            if page.next.is_none() || page.lines.len() >= limit || examined >= EXAMINED {
                return Ok(page);
            }
        }
    }
}

/// How many entries one request looks through at most.
const EXAMINED: usize = 10_000;

/// How many entries are read at once.
const READ_AT_ONCE: usize = 1_000;

/// An error of a write that may have been done.
fn of_a_write(error: StoreError) -> ActError {
    match error {
        StoreError::Lost(error) => ActError::Unknown(error),
        error => ActError::Store(error),
    }
}
