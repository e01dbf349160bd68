//! Client keys as the store has them: plain, or sealed. The store says which, and refuses the other.

use super::{Engine, Shared};
use crate::identity::RecordKey;
use crate::record::{Draft, Record};
use crate::seal::{ClientKeys, Keyring, Renewed, Sealer, open_secret, resealed, seal_secret};
use crate::store::{Filter, KeyFormat, KeyFormatSet, Respell, StoreError};
use crate::transition::{Change, rewrite};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The format of the store's keys, as far as this engine knows it.
#[derive(Default)]
pub(super) struct LearntKeys {
    known: RwLock<Option<Known>>,
    /// Whether the warning was logged.
    plain_told: AtomicBool,
}

#[derive(Clone)]
enum Known {
    Plain,
    Sealed(Arc<ClientKeys>),
}

impl Known {
    fn stored<'k>(&self, key: &'k RecordKey) -> Cow<'k, RecordKey> {
        match self {
            Self::Plain => Cow::Borrowed(key),
            Self::Sealed(keys) => Cow::Owned(RecordKey { key: keys.seal(&key.key).into(), ..key.clone() }),
        }
    }
}

impl LearntKeys {
    /// The key as the store has it, if that is known without asking.
    pub(super) fn stored<'k>(&self, key: &'k RecordKey) -> Option<Cow<'k, RecordKey>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map(|known| known.stored(key))
    }

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The store is asked again before the next reservation.
    pub(super) fn forget(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Shared {
    /// The key as the store has it.
    pub(super) async fn stored_key<'k>(&self, key: &'k RecordKey) -> Result<Cow<'k, RecordKey>, StoreError> {
        Ok(self.learnt_keys().await?.stored(key))
    }

    async fn learnt_keys(&self) -> Result<Known, StoreError> {
        if let Some(known) = self.client_keys.known() {
            return Ok(known);
        }
        let keyring = self.keyring();
        let known = self.learn_keys(keyring.as_deref()).await?;
        if let (Known::Plain, Some(_)) = (&known, keyring.as_deref().and_then(Keyring::sealing_key))
            && !self.client_keys.plain_told.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                "client keys are stored in plain text, because the store is older than encryption; `semel rekey --keys` seals them"
            );
        }
        *self.client_keys.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known.clone());
        Ok(known)
    }

    /// Asks the store. If the engine seals, a store that was never used is set to sealed keys.
    async fn learn_keys(&self, keyring: Option<&Keyring>) -> Result<Known, StoreError> {
        let kept = self.store.recall(KeyFormat::SECRET.into()).await?;
        let kept = match (kept, keyring.and_then(Keyring::sealing_key)) {
            (Some(kept), _) => kept,
            (None, None) => return Ok(Known::Plain),
            (None, Some(key)) => {
                let secret = seal_secret(key, KeyFormat::SECRET, &self.environment.secret());
                match self.store.set_key_format(KeyFormat::Sealed { secret }, None).await? {
                    KeyFormatSet::InForce(KeyFormat::Sealed { secret }) => secret,
                    KeyFormatSet::NotAllowed(why) => {
                        tracing::warn!(why, "client keys cannot be sealed in this store");
                        return Ok(Known::Plain);
                    }
                    _ => return Ok(Known::Plain),
                }
            }
        };
        Ok(Known::Sealed(Arc::new(client_keys(keyring, kept)?)))
    }
}

fn client_keys(keyring: Option<&Keyring>, kept: Bytes) -> Result<ClientKeys, StoreError> {
    let secret = open_secret(keyring, KeyFormat::SECRET, kept)?;
    let secret = <&[u8; ClientKeys::SECRET_BYTES]>::try_from(&*secret);
    let wrong = |_| StoreError::Damaged("the stored secret of client keys has the wrong length".into());
    Ok(ClientKeys::new(secret.map_err(wrong)?))
}

/// What became of a [conversion](Engine::convert_client_keys).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeysConverted {
    /// They are sealed now (`true`), or plain.
    Done(bool),
    /// There was nothing to do.
    AlreadySo(bool),
    /// This many operations are in flight. Nothing was done.
    UnderWay(u64),
    /// The store's user may not do it. Nothing was done.
    NotAllowed(String),
}

impl Engine {
    /// Whether client keys are sealed in the store. Asks the store if this engine does not know yet, and has one that was never used
    /// seal them, if the engine seals anything.
    ///
    /// # Errors
    /// The store did not answer; or they are sealed, and the keyring does not open the secret that they are sealed with: this engine
    /// can look nothing up.
    pub async fn seals_client_keys(&self) -> Result<bool, StoreError> {
        Ok(matches!(self.shared.learnt_keys().await?, Known::Sealed(_)))
    }

    /// Whether an engine with this keyring could look keys up in the store and tell callers apart, before it is given one.
    ///
    /// # Errors
    /// As [`seals_client_keys`](Self::seals_client_keys).
    pub async fn check_keyring(&self, keyring: Option<&Keyring>) -> Result<(), StoreError> {
        let kept = self.shared.store.recall(KeyFormat::SECRET.into()).await?;
        kept.map_or(Ok(()), |kept| client_keys(keyring, kept).map(drop))?;
        self.shared.check_hash_secret(keyring).await
    }

    /// The key of a record as the store has it, for callers that query the store themselves.
    ///
    /// # Errors
    /// As [`seals_client_keys`](Self::seals_client_keys).
    pub async fn stored_key(&self, key: &RecordKey) -> Result<RecordKey, StoreError> {
        Ok(self.shared.stored_key(key).await?.into_owned())
    }

    /// The filter as the store has it: the client's key as it is stored.
    ///
    /// # Errors
    /// As [`seals_client_keys`](Self::seals_client_keys).
    pub async fn stored_filter(&self, mut filter: Filter) -> Result<Filter, StoreError> {
        if let Some(key) = &mut filter.key
            && let Known::Sealed(keys) = self.shared.learnt_keys().await?
        {
            *key = keys.seal(key);
        }
        Ok(filter)
    }

    /// The key that the client sent, of a record from the store.
    ///
    /// # Errors
    /// As [`seals_client_keys`](Self::seals_client_keys), or [`StoreError::Damaged`]: it does not open.
    pub async fn client_key(&self, record: &Record) -> Result<RecordKey, StoreError> {
        match self.shared.learnt_keys().await? {
            Known::Plain => Ok(record.key.clone()),
            Known::Sealed(keys) => Ok(RecordKey { key: opened(&keys, record)?.into(), ..record.key.clone() }),
        }
    }

    /// What this engine thinks of the store's key format may be over: a reservation in a transaction of the application's was refused.
    pub fn ask_key_format_again(&self) {
        self.shared.client_keys.forget();
    }

    /// Seals the secrets of client keys and keyed hashes in the store by the key that seals now; how many were sealed otherwise, or not at all. With keys that only open, the
    /// secret of keyed hashes is put back in the clear; that of client keys goes with [their format](Self::convert_client_keys).
    ///
    /// # Errors
    /// The store did not answer, or a secret does not open.
    pub async fn reseal_secrets(&self) -> Result<usize, StoreError> {
        let Some(keyring) = self.shared.keyring() else { return Ok(0) };
        let mut count = usize::from(self.shared.move_hash_secret(&keyring).await?);
        let of_hashes = self.shared.sealed_hash_secret_name().await?;
        for name in of_hashes.into_iter().chain([KeyFormat::SECRET]) {
            // A value under a name has no version: `replace` compares the value itself, so this is no case for `compare_and_swap`.
            let mut kept = self.shared.store.recall(name.into()).await?;
            while let Some(found) = kept.take()
                && let Some(next) = resealed(&keyring, name, &found)?
            {
                kept = self.shared.store.replace(name.into(), found, next.clone()).await?;
                count += usize::from(kept.as_ref() == Some(&next));
            }
        }
        Ok(count)
    }

    /// Writes all records of the store in the format that the keyring asks for: sealed keys if it seals, plain ones if it only opens. Answers
    /// and checkpoints are sealed, or not, likewise.
    ///
    /// One transaction of the store, however long it takes: reservations wait meanwhile, or find the store unavailable. Stop all instances
    /// first, because owners of operations in flight would be fenced; it refuses as long as it finds any.
    ///
    /// # Errors
    /// The store did not answer, or a record does not open. Nothing was done.
    pub async fn convert_client_keys(&self) -> Result<KeysConverted, StoreError> {
        let keyring = self.shared.keyring();
        let kept = self.shared.store.recall(KeyFormat::SECRET.into()).await?;
        let sealing = keyring.as_deref().and_then(Keyring::sealing_key);
        let (format, respell) = match (kept, sealing) {
            (Some(kept), Some(_)) => {
                client_keys(keyring.as_deref(), kept)?;
                return Ok(KeysConverted::AlreadySo(true));
            }
            (None, None) => return Ok(KeysConverted::AlreadySo(false)),
            (None, Some(key)) => {
                let secret = self.environment().secret();
                let keys = ClientKeys::new(&secret);
                let secret = seal_secret(key, KeyFormat::SECRET, &secret);
                let seal = move |record: &Record| Ok(keys.seal(&record.key.key));
                (KeyFormat::Sealed { secret }, respelling(keyring.clone(), seal))
            }
            (Some(kept), None) => {
                let keys = client_keys(keyring.as_deref(), kept)?;
                let open = move |record: &Record| opened(&keys, record);
                (KeyFormat::Plain, respelling(keyring.clone(), open))
            }
        };
        let set = self.shared.store.set_key_format(format, Some(respell)).await;
        self.shared.client_keys.forget();
        Ok(match set? {
            KeyFormatSet::InForce(format) => KeysConverted::Done(matches!(format, KeyFormat::Sealed { .. })),
            KeyFormatSet::UnderWay(count) => KeysConverted::UnderWay(count),
            KeyFormatSet::NotAllowed(why) => KeysConverted::NotAllowed(why),
            KeyFormatSet::InUse => {
                return Err(StoreError::Unavailable("the store cannot convert its keys".into()));
            }
        })
    }
}

fn opened(keys: &ClientKeys, record: &Record) -> Result<String, StoreError> {
    keys.open(&record.key.key).ok_or_else(|| {
        StoreError::Damaged(format!("operation {}: its client key cannot be decrypted", record.operation_id))
    })
}

/// A record under another key. Sealed contents are bound to the key, so they are sealed again.
fn respelling(
    keyring: Option<Arc<Keyring>>,
    key: impl Fn(&Record) -> Result<String, StoreError> + Send + Sync + 'static,
) -> Respell {
    Arc::new(move |record| {
        let key = RecordKey { key: key(record)?.into(), ..record.key.clone() };
        let Renewed { response, checkpoint } = Sealer::moved(keyring.as_ref(), record, &key)?;
        match rewrite(record, response, checkpoint) {
            Change::Put { next, .. } => Ok(Box::new(Draft { key, ..*next })),
            Change::Remove => Err(StoreError::Damaged("a record cannot be rewritten by removing it".into())),
        }
    })
}
