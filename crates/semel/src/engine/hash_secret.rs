//! The secret of keyed hashes, which name callers by their credentials. All instances on a store share it; the keyring seals it there.
//!
//! Under [`NAME`] is either the secret itself, in the clear, or [`MARK`]: then the secret is under [`SEALED`], sealed. What is under `SEALED` counts for
//! nothing as long as `NAME` has no mark. The mark is too short for a secret, so that a build from before it finds none and executes nothing; sealed
//! bytes under `NAME` it would take for another secret, which makes every caller a new tenant.
//!
//! Every writer puts the secret under `SEALED` first and the mark under `NAME` second, and a reader that finds the mark reads `SEALED` next. So a crash
//! between the two leaves the clear secret in force, or none. Without a secret under `NAME`, `SEALED` is only ever created, never replaced: somebody
//! else may be about to mark what is there. With a clear one, it is replaced by seals of this very secret alone.

use super::{Engine, Shared};
use crate::fingerprint::FingerprintSecret;
use crate::seal::{Keyring, SealingKey, open_secret, seal_secret, sealed_by};
use crate::store::StoreError;
use bytes::Bytes;

const NAME: &str = "secret/keyed-hashes";
const SEALED: &str = "secret/keyed-hashes/sealed";
/// In place of a secret that is sealed. Shorter than [`FingerprintSecret::MIN_BYTES`].
const MARK: Bytes = Bytes::from_static(b"sealed");

/// What changes under a name changes twice at most: a secret is made, and it is sealed.
const LOOKS: usize = 4;

impl Shared {
    /// The secret. The first caller creates it.
    async fn hash_secret(&self) -> Result<Bytes, StoreError> {
        let keyring = self.keyring();
        let sealing = keyring.as_deref().and_then(Keyring::sealing_key);
        let own = Bytes::copy_from_slice(&self.environment.secret());
        for _ in 0..LOOKS {
            match self.recalled(NAME).await? {
                Some(mark) if mark == MARK => return self.sealed_hash_secret(keyring.as_deref()).await,
                Some(clear) => {
                    if sealing.is_some() {
                        tracing::warn!(
                            "the secret that hashes credentials is stored in plain text, because it is older than encryption; `semel rekey` seals it"
                        );
                    }
                    return Ok(clear);
                }
                None => match sealing {
                    None => drop(self.store.remember(NAME.into(), own.clone()).await?),
                    Some(key) => {
                        let sealed = seal_secret(key, SEALED, &own);
                        self.store.remember(SEALED.into(), sealed).await?;
                        self.store.remember(NAME.into(), MARK).await?;
                    }
                },
            }
        }
        Err(StoreError::Unavailable(format!("\"{NAME}\" in the store keeps changing")))
    }

    /// The secret that the mark stands for.
    async fn sealed_hash_secret(&self, keyring: Option<&Keyring>) -> Result<Bytes, StoreError> {
        match self.recalled(SEALED).await? {
            Some(kept) if sealed_by(&kept).is_some() => open_secret(keyring, SEALED, kept),
            _ => Err(StoreError::Damaged(format!("\"{SEALED}\" in the store is missing, or is not sealed"))),
        }
    }

    async fn recalled(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        self.store.recall(name.into()).await
    }

    /// Whether an engine with this keyring would have the secret, if there is one.
    pub(super) async fn check_hash_secret(&self, keyring: Option<&Keyring>) -> Result<(), StoreError> {
        match self.recalled(NAME).await? {
            Some(mark) if mark == MARK => self.sealed_hash_secret(keyring).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Where the secret is, if it is sealed. What is there otherwise counts for nothing, and need not open.
    pub(super) async fn sealed_hash_secret_name(&self) -> Result<Option<&'static str>, StoreError> {
        Ok(self.recalled(NAME).await?.filter(|mark| *mark == MARK).map(|_| SEALED))
    }

    /// Seals a secret that is in the clear, or puts it there where nothing seals; whether it did. Any number may do it, and it may end anywhere.
    pub(super) async fn move_hash_secret(&self, keyring: &Keyring) -> Result<bool, StoreError> {
        let kept = self.recalled(NAME).await?;
        let (from, to) = match (kept, keyring.sealing_key()) {
            (None, _) => return Ok(false),
            (Some(mark), Some(_)) if mark == MARK => return Ok(false),
            (Some(mark), None) if mark == MARK => (mark, self.sealed_hash_secret(Some(keyring)).await?),
            (Some(_), None) => return Ok(false),
            (Some(clear), Some(key)) => {
                self.put_beside(keyring, key, &clear).await?;
                (clear, MARK)
            }
        };
        let there = self.store.replace(NAME.into(), from, to.clone()).await?;
        Ok(there == Some(to))
    }

    /// Puts the secret under the name for sealed ones, whatever is there.
    async fn put_beside(
        &self,
        keyring: &Keyring,
        key: &SealingKey,
        secret: &Bytes,
    ) -> Result<(), StoreError> {
        let next = seal_secret(key, SEALED, secret);
        let mut there = self.store.remember(SEALED.into(), next.clone()).await?;
        for _ in 0..LOOKS {
            let same = open_secret(Some(keyring), SEALED, there.clone()).is_ok_and(|it| it == secret);
            if same && sealed_by(&there).is_some() {
                return Ok(());
            }
            let replaced = self.store.replace(SEALED.into(), there, next.clone());
            let Some(now) = replaced.await? else { break };
            there = now;
        }
        Err(StoreError::Unavailable(format!("\"{SEALED}\" in the store keeps changing")))
    }
}

impl Engine {
    /// The secret of keyed hashes that all instances on this store share: made by the first, kept in the store, and sealed there if the keyring
    /// seals. One that was made before anything was sealed stays in the clear until [`reseal_secrets`](Self::reseal_secrets).
    ///
    /// # Errors
    /// The store did not answer, or the secret does not open.
    pub async fn shared_secret(&self) -> Result<&FingerprintSecret, StoreError> {
        self.shared
            .secret
            .get_or_try_init(|| async {
                let secret = self.shared.hash_secret().await?;
                FingerprintSecret::new(&secret).map_err(|error| StoreError::Damaged(error.to_string()))
            })
            .await
    }
}
