//! The engine's keys, and what is opened by them.

use super::outcome_writes::OutcomeWrites;
use super::{Engine, Shared};
use crate::policy::Policy;
use crate::record::Record;
use crate::seal::{Keyring, Renewed, Sealer};
use crate::store::StoreError;
use crate::transition::{Change, Evidence, Settlement, rewrite};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::{Arc, PoisonError};

impl Shared {
    pub(super) fn keyring(&self) -> Option<Arc<Keyring>> {
        self.keyring.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn sealer<T>(&self, record: &Record<T>) -> Sealer {
        Sealer::of(self.keyring(), record)
    }

    /// The record with its response as it was given.
    pub(super) fn opened(&self, mut record: Record) -> Result<Record, StoreError> {
        if let Some(response) = record.response.take() {
            record.response = Some(self.sealer(&record).open_response(response)?);
        }
        Ok(record)
    }

    /// The settlement as it is written to `record`.
    pub(super) fn sealed<'s>(&self, settlement: &'s Settlement, record: &Record) -> Cow<'s, Settlement> {
        let (Evidence::Completed { response: Some(given), .. }
        | Evidence::Failed { response: Some(given), .. }) = &settlement.evidence
        else {
            return Cow::Borrowed(settlement);
        };
        let kept = self.sealer(record).response(given.clone());
        if kept == *given {
            return Cow::Borrowed(settlement);
        }
        let mut settlement = settlement.clone();
        if let Evidence::Completed { response, .. } | Evidence::Failed { response, .. } =
            &mut settlement.evidence
        {
            *response = Some(kept);
        }
        Cow::Owned(settlement)
    }
}

impl Engine {
    /// Seals and opens with these keys from now on, or with none. Operations in flight end with the keys that they began with.
    pub fn set_keyring(&self, keyring: Option<Keyring>) {
        let mut kept = self.shared.keyring.write().unwrap_or_else(PoisonError::into_inner);
        *kept = keyring.map(Arc::new);
        drop(kept);
        self.shared.fingerprint_secrets.forget();
        self.shared.client_keys.forget();
    }

    /// The writes of the owner of `record`, for stores that write them in the application's own transaction.
    #[must_use]
    pub fn outcome_writes<T>(&self, record: &Record<T>, policy: &Arc<Policy>) -> OutcomeWrites {
        OutcomeWrites::new(policy, self.shared.sealer(record))
    }

    /// The record with response and checkpoint unsealed, for callers that read it from the store themselves. It is to be
    /// looked at, and not to be written back: it would be stored without a seal.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]: it does not open, or is not sealed and has to be.
    pub fn open(&self, record: Record) -> Result<Record, StoreError> {
        let mut record = self.shared.opened(record)?;
        record.checkpoint = self.checkpoint_of(&record)?;
        Ok(record)
    }

    /// What an owner left at the record's recovery point, as it was given.
    ///
    /// # Errors
    /// As in [`open`](Self::open).
    pub fn checkpoint_of(&self, record: &Record) -> Result<Option<Bytes>, StoreError> {
        if record.checkpoint.is_none() {
            return Ok(None);
        }
        self.shared.sealer(record).checkpoint_of(record)
    }

    /// The change by which a record is sealed by the key that seals now, or not at all where none does; `None`: it is so already.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]: it does not open.
    pub fn rewritten(&self, record: &Record) -> Result<Option<Change>, StoreError> {
        let renewed = self.shared.sealer(record).renewed(record)?;
        Ok(renewed.map(|Renewed { response, checkpoint }| rewrite(record, response, checkpoint)))
    }
}
