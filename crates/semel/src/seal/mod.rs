//! Encryption at rest: answers and checkpoints are sealed before they reach a store, and opened when they are needed.
//!
//! A [`Keyring`] is given to the engine ([`EngineOptions::keyring`](crate::EngineOptions::keyring)); stores, listings, reaper and
//! everybody else carry what is sealed about as it is. Sealed are the body and the kept headers of an answer, together, what
//! phases leave at a recovery point, and, in a store that was never used without, the client's key. Not sealed is what records are found,
//! compared and judged by: tenant, operation, fingerprint, state, moments, the answer's status and schema version, the resource's type
//! and id, error codes, and history.
//!
//! Client keys are sealed so that equal ones stay equal, by a secret of the store, which the keyring seals: a store has either plain keys or
//! sealed ones, and refuses the others ([`KeyFormat`](crate::KeyFormat)).
//!
//! What is sealed belongs to one place: it opens only in the record of the tenant, operation, key, operation id and fingerprint that
//! it was sealed for, with the status, schema version or recovery point that it was sealed with. Anything else is
//! [damage](crate::StoreError::Damaged).

mod client_keys;
mod envelope;
mod kept;
mod keyring;
mod store_secret;

pub use keyring::{InvalidKey, InvalidKeyring, Keyring, Plain, SealingKey};

pub(crate) use client_keys::ClientKeys;
pub(crate) use store_secret::{open_secret, resealed, seal_secret};

pub use crate::store::SEALED_KEY;

use crate::identity::{OperationId, RecordKey};
use crate::record::{Body, Record, StoredResponse};
use crate::store::StoreError;
use bytes::Bytes;
use envelope::{Unopened, is_sealed};
use std::sync::Arc;

/// The name of the key that sealed a body, or a checkpoint, as these bytes say themselves; `None`: they are not sealed.
#[must_use]
pub fn sealed_by(bytes: &[u8]) -> Option<&str> {
    envelope::sealed_by(bytes)
}

/// What is kept of an operation, by another key.
pub(crate) struct Renewed {
    pub(crate) response: Option<StoredResponse>,
    pub(crate) checkpoint: Option<Bytes>,
}

/// Seals and opens what is kept of one operation.
#[derive(Clone)]
pub(crate) struct Sealer {
    keyring: Option<Arc<Keyring>>,
    operation_id: OperationId,
    /// The record, as the seals name it; nothing where there are no keys.
    bound: Option<Arc<[u8]>>,
}

impl Sealer {
    pub(crate) fn of<T>(keyring: Option<Arc<Keyring>>, record: &Record<T>) -> Self {
        let bound = keyring.is_some().then(|| bound(record).into());
        Self { keyring, operation_id: record.operation_id, bound }
    }

    /// The answer as it is stored.
    pub(crate) fn response(&self, response: StoredResponse) -> StoredResponse {
        let Some(key) = self.keyring.as_ref().and_then(|keyring| keyring.sealing_key()) else {
            return response;
        };
        let body = match &response.body {
            Body::Stored(body) => {
                let length = kept::packed_length(&response.headers, body);
                let bound = self.bound_response(key.id(), &response);
                let pack = |bytes: &mut Vec<u8>| kept::pack(&response.headers, body, bytes);
                Body::Sealed(envelope::seal(key, &bound, length, pack))
            }
            // Without a body the headers are not replayed: they are left out.
            other => other.clone(),
        };
        StoredResponse { headers: Vec::new(), body, ..response }
    }

    /// The answer as it was given.
    pub(crate) fn open_response(&self, mut response: StoredResponse) -> Result<StoredResponse, StoreError> {
        match response.body {
            Body::Stored(_) => self.plain("its response").map(|()| response),
            // The sealed ones are beside the body, and these are somebody else's.
            Body::Sealed(_) if !response.headers.is_empty() => {
                Err(self.damaged("its headers", &Unopened::Tampered))
            }
            Body::Sealed(bytes) => {
                response.body = Body::NotStored;
                let bound = |id: &str| self.bound_response(id, &response);
                let opened = envelope::open(self.keyring.as_deref(), bound, bytes);
                let (headers, body) = opened
                    .and_then(|opened| kept::unpack(opened).ok_or(Unopened::Tampered))
                    .map_err(|error| self.damaged("its response", &error))?;
                Ok(StoredResponse { headers, body: Body::Stored(body), ..response })
            }
            Body::NotStored | Body::Dropped | Body::Omitted => Ok(response),
        }
    }

    /// What is left at a recovery point, as it is stored.
    pub(crate) fn checkpoint(&self, point: &str, checkpoint: Bytes) -> Bytes {
        match self.keyring.as_ref().and_then(|keyring| keyring.sealing_key()) {
            None => checkpoint,
            Some(key) => {
                let bound = self.bound_checkpoint(key.id(), point);
                let fill = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&checkpoint);
                envelope::seal(key, &bound, checkpoint.len(), fill)
            }
        }
    }

    /// What was left at a recovery point.
    pub(crate) fn open_checkpoint(&self, point: &str, checkpoint: Bytes) -> Result<Bytes, StoreError> {
        if !is_sealed(&checkpoint) {
            return self.plain("its checkpoint").map(|()| checkpoint);
        }
        let bound = |id: &str| self.bound_checkpoint(id, point);
        envelope::open(self.keyring.as_deref(), bound, checkpoint)
            .map_err(|error| self.damaged("its checkpoint", &error))
    }

    /// What `record` has at its recovery point.
    pub(crate) fn checkpoint_of(&self, record: &Record) -> Result<Option<Bytes>, StoreError> {
        let Some(checkpoint) = record.checkpoint.clone() else { return Ok(None) };
        self.open_checkpoint(record.recovery_point.as_deref().unwrap_or_default(), checkpoint).map(Some)
    }

    /// Whether these bytes are as they would be stored now.
    fn is_current(&self, bytes: &[u8]) -> bool {
        match self.keyring.as_ref().and_then(|keyring| keyring.seals_with()) {
            Some(id) => sealed_by(bytes) == Some(id),
            None => !is_sealed(bytes),
        }
    }

    /// The response and the checkpoint of `record` as they would be stored now; `None`: they are already.
    pub(crate) fn renewed(&self, record: &Record) -> Result<Option<Renewed>, StoreError> {
        let opener = Self { keyring: self.keyring.as_ref().map(accepting), ..self.clone() };
        let mut renewed =
            Renewed { response: record.response.clone(), checkpoint: record.checkpoint.clone() };
        let mut changed = false;
        if let Some(kept) = &mut renewed.response {
            let current = match &kept.body {
                Body::Sealed(bytes) => self.is_current(bytes),
                // Whatever a plain body begins with.
                Body::Stored(_) => self.is_current(&[]),
                Body::NotStored | Body::Dropped | Body::Omitted => {
                    kept.headers.is_empty() || self.is_current(&[])
                }
            };
            if !current {
                *kept = self.response(opener.open_response(kept.clone())?);
                changed = true;
            }
        }
        if let Some(kept) = &mut renewed.checkpoint
            && !self.is_current(kept)
        {
            let point = record.recovery_point.as_deref().unwrap_or_default();
            *kept = self.checkpoint(point, opener.open_checkpoint(point, kept.clone())?);
            changed = true;
        }
        Ok(changed.then_some(renewed))
    }

    /// The response and the checkpoint of `record` as they would be stored now under another key.
    pub(crate) fn moved(
        keyring: Option<&Arc<Keyring>>,
        record: &Record,
        key: &RecordKey,
    ) -> Result<Renewed, StoreError> {
        let opener = Self::of(keyring.map(accepting), record);
        let moved = Record { key: key.clone(), response: None, checkpoint: None, ..record.clone() };
        let sealer = Self::of(keyring.cloned(), &moved);
        let response = record.response.clone().map(|kept| Ok(sealer.response(opener.open_response(kept)?)));
        let point = record.recovery_point.as_deref().unwrap_or_default();
        let checkpoint = opener.checkpoint_of(record)?.map(|kept| sealer.checkpoint(point, kept));
        Ok(Renewed { response: response.transpose()?, checkpoint })
    }

    fn plain(&self, what: &str) -> Result<(), StoreError> {
        match &self.keyring {
            Some(keyring) if keyring.refuses_plain() => Err(StoreError::Damaged(format!(
                "operation {}: {what} is not sealed, although it must be",
                self.operation_id
            ))),
            _ => Ok(()),
        }
    }

    fn damaged(&self, what: &str, error: &Unopened) -> StoreError {
        StoreError::Damaged(format!("operation {}: {what} {error}", self.operation_id))
    }

    fn bound_response(&self, id: &str, response: &StoredResponse) -> Vec<u8> {
        let mut bytes = self.bound.as_deref().unwrap_or_default().to_vec();
        part(&mut bytes, b"response");
        part(&mut bytes, id.as_bytes());
        part(&mut bytes, &response.status.to_le_bytes());
        if let Some(version) = &response.schema_version {
            part(&mut bytes, version.as_bytes());
        }
        bytes
    }

    fn bound_checkpoint(&self, id: &str, point: &str) -> Vec<u8> {
        let mut bytes = self.bound.as_deref().unwrap_or_default().to_vec();
        part(&mut bytes, b"checkpoint");
        part(&mut bytes, id.as_bytes());
        part(&mut bytes, point.as_bytes());
        bytes
    }
}

/// Whatever becomes of plain ones elsewhere: this is how they come to be sealed.
fn accepting(keyring: &Arc<Keyring>) -> Arc<Keyring> {
    Arc::new((**keyring).clone().plain(Plain::Accepted))
}

/// What never changes of a record.
fn bound<T>(record: &Record<T>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    let key = &record.key;
    for text in ["semel sealed 1", &key.tenant, &key.stored_operation(), &key.key] {
        part(&mut bytes, text.as_bytes());
    }
    part(&mut bytes, record.operation_id.as_bytes());
    part(&mut bytes, &record.recipe.0);
    part(&mut bytes, &record.fingerprint.0);
    bytes
}

/// The length keeps ("ab", "c") and ("a", "bc") apart.
fn part(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
    bytes.extend_from_slice(part);
}

#[cfg(test)]
mod tests;
