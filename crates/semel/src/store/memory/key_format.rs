//! The format of client keys, and what is refused by it.

use super::{Contents, Kept};
use crate::record::{Draft, State};
use crate::store::{KeyFormat, KeyFormatSet, Respell, SEALED_KEY, StoreError};
use crate::time::Timestamp;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};

impl Contents {
    /// Refuses a draft of the other format.
    pub(super) fn check_format(&self, draft: &Draft) -> Result<(), StoreError> {
        match self.sealed_keys {
            Some(sealed) if sealed != draft.key.key.starts_with(SEALED_KEY) => {
                let format = if sealed { "sealed" } else { "plain" };
                Err(StoreError::Unavailable(format!("the store accepts only {format} client keys")))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn set_key_format(
        &mut self,
        format: KeyFormat,
        respell: Option<&Respell>,
        now: Timestamp,
    ) -> Result<KeyFormatSet, StoreError> {
        let there = match self.remembered.get(KeyFormat::SECRET) {
            Some(secret) => KeyFormat::Sealed { secret: secret.clone() },
            None => KeyFormat::Plain,
        };
        if matches!(
            (&there, &format),
            (KeyFormat::Plain, KeyFormat::Plain) | (KeyFormat::Sealed { .. }, KeyFormat::Sealed { .. })
        ) {
            return Ok(KeyFormatSet::InForce(there));
        }
        match respell {
            None => {
                let used = self.remembered.keys().any(|name| name.starts_with(KeyFormat::RECIPES));
                if used || !self.records.is_empty() {
                    return Ok(KeyFormatSet::InUse);
                }
            }
            Some(respell) => {
                let under_way = |kept: &&Kept| {
                    kept.record.state == State::InProgress && !kept.record.times.lease.has_come(now)
                };
                let under_way = self.records.values().filter(under_way).count() as u64;
                if under_way > 0 {
                    return Ok(KeyFormatSet::UnderWay(under_way));
                }
                self.respell(respell, now)?;
            }
        }
        match &format {
            KeyFormat::Plain => drop(self.remembered.remove(KeyFormat::SECRET)),
            KeyFormat::Sealed { secret } => {
                let own = Bytes::copy_from_slice(secret);
                self.remembered.insert(KeyFormat::SECRET.into(), own);
            }
        }
        self.sealed_keys = Some(matches!(format, KeyFormat::Sealed { .. }));
        Ok(KeyFormatSet::InForce(format))
    }

    /// All of them, or none.
    fn respell(&mut self, respell: &Respell, now: Timestamp) -> Result<(), StoreError> {
        let (mut records, mut keys) = (BTreeMap::new(), HashMap::new());
        for Kept { record, history, place } in self.records.values() {
            let record = respell(record)?.at(now);
            let unique = record.key.unique();
            keys.insert(record.operation_id, unique.clone());
            records.insert(unique, Kept { record, history: history.clone(), place: *place });
        }
        (self.records, self.keys) = (records, keys);
        Ok(())
    }
}
