//! Selects operations by what no index of the store knows: error, resource, and the tenants that somebody may see.
//!
//! Pages of the store are read by index and looked through here. A page ends after [`EXAMINED`] records even if few of them were selected: its
//! cursor goes on from there. So no request takes long, whatever it asks for.

use super::Shared;
use crate::identity::{Identity, TenantPattern, Tenants};
use semel::{Cursor, Filter, Page, Record, StoreError, Timestamp};
use std::time::Duration;

/// How many records one request looks through at most.
pub(super) const EXAMINED: usize = 10_000;

/// How many records are read at once.
const READ_AT_ONCE: usize = 1_000;

/// Which records.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Selection {
    /// What the store selects by.
    pub(super) filter: Filter,
    /// Only with this last error.
    pub(super) error: Option<String>,
    /// Only with this resource: a type, or a type and an id as `type/id`.
    pub(super) resource: Option<String>,
    /// Only created longer ago than this.
    pub(super) older_than: Option<Duration>,
}

impl Selection {
    /// The selection with ages as moments, by the store's now.
    pub(super) fn at(mut self, now: Timestamp) -> Self {
        if let Some(age) = self.older_than.take() {
            let latest = now.minus(age);
            let until = &mut self.filter.created_until;
            *until = Some(until.map_or(latest, |until| until.min(latest)));
        }
        self
    }

    fn is_all_by_index(&self) -> bool {
        self.error.is_none() && self.resource.is_none()
    }

    fn has(&self, record: &Record) -> bool {
        let error = self.error.as_deref().is_none_or(|error| record.last_error.as_deref() == Some(error));
        let resource = self.resource.as_deref().is_none_or(|wanted| {
            record.resource.as_ref().is_some_and(|resource| match wanted.split_once('/') {
                None => resource.kind == wanted,
                Some((kind, id)) => resource.kind == kind && resource.id == id,
            })
        });
        error && resource
    }
}

impl Shared {
    /// A page of the records that are selected and that `identity` may see.
    pub(super) async fn select(
        &self,
        identity: &Identity,
        selection: &Selection,
        from: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let store = self.admin.engine.store();
        let mut filter = selection.filter.clone();
        if let Tenants::Only(patterns) = &identity.tenants {
            match (&filter.tenant, patterns.as_slice()) {
                (Some(tenant), _) if !identity.tenants.allow(tenant) => {
                    return Ok(Page { records: Vec::new(), damaged: 0, next: None });
                }
                (None, [TenantPattern::Exact(tenant)]) => filter.tenant = Some(tenant.clone()),
                _ => {}
            }
        }
        let is_theirs = filter.tenant.is_some() || !identity.tenants.is_limited();
        let filter = self.admin.engine.stored_filter(filter).await?;
        if is_theirs && selection.is_all_by_index() {
            return store.list(filter, from, limit).await;
        }
        let is_selected =
            |record: &Record| selection.has(record) && identity.tenants.allow(&record.key.tenant);
        let mut selected = Page { records: Vec::new(), damaged: 0, next: from };
        let mut examined = 0;
        loop {
            let page = store.list(filter.clone(), selected.next.clone(), READ_AT_ONCE).await?;
            let room = limit - selected.records.len();
            let beyond = page.records.iter().enumerate().filter(|(_, record)| is_selected(record)).nth(room);
            let page = match beyond {
                // Read again up to the record before it, so that the next page begins with it.
                Some((index, _)) if index > 0 => store.list(filter.clone(), selected.next, index).await?,
                _ => page,
            };
            examined += page.records.len() + page.damaged;
            // Damaged records are of tenants that nobody can tell.
            selected.damaged += if identity.tenants.is_limited() { 0 } else { page.damaged };
            selected.records.extend(page.records.into_iter().filter(is_selected).take(room));
            selected.next = page.next;
            if selected.next.is_none() || selected.records.len() >= limit || examined >= EXAMINED {
                return Ok(selected);
            }
        }
    }
}
