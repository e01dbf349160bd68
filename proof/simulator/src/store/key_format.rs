//! The format of client keys, and what is refused by it.

use super::contents::Contents;
use bytes::Bytes;
use semel::{Draft, KeyFormat, KeyFormatSet, Now, Respell, State, StoreError};

impl Contents {
    /// Refuses a draft of the other format.
    pub(super) fn check_format(&self, draft: &Draft) -> Result<(), StoreError> {
        match self.sealed_keys {
            Some(sealed) if sealed != draft.key.key.starts_with(semel::seal::SEALED_KEY) => {
                Err(StoreError::Unavailable("the store takes client keys of the other format alone".into()))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn set_key_format(
        &mut self,
        format: KeyFormat,
        respell: Option<&Respell>,
        now: Now,
    ) -> Result<KeyFormatSet, StoreError> {
        let there = match self.remembered.get(KeyFormat::SECRET) {
            Some(secret) => KeyFormat::Sealed { secret: secret.clone() },
            None => KeyFormat::Plain,
        };
        if std::mem::discriminant(&there) == std::mem::discriminant(&format) {
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
                let records = || self.records.values().map(|kept| &kept.record);
                let under_way = |record: &&semel::Record| {
                    record.state == State::InProgress && !record.times.lease.has_come(now.earliest)
                };
                let under_way = records().filter(under_way).count() as u64;
                if under_way > 0 {
                    return Ok(KeyFormatSet::UnderWay(under_way));
                }
                let spelt = records().map(|record| Ok((record.key.clone(), respell(record)?.at(now))));
                let spelt = spelt.collect::<Result<Vec<_>, StoreError>>()?;
                self.respelt(spelt);
            }
        }
        match &format {
            KeyFormat::Plain => drop(self.remembered.remove(KeyFormat::SECRET)),
            KeyFormat::Sealed { secret } => {
                self.remembered.insert(KeyFormat::SECRET.into(), Bytes::copy_from_slice(secret));
            }
        }
        self.sealed_keys = Some(matches!(format, KeyFormat::Sealed { .. }));
        // One large transaction, which is durable or not as a whole: it is, before anybody is told.
        self.flush();
        Ok(KeyFormatSet::InForce(format))
    }
}
