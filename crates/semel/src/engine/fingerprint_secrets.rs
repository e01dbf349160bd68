//! The secrets that fingerprints are keyed with: in the store, so that all instances agree, and sealed there by the keyring.
//!
//! Each key that seals has a secret of its own, and so has a store without encryption: once a key seals, new fingerprints are
//! keyed with a secret that was never stored in the clear. Under the names of a key, the first secret is the one for new fingerprints; after
//! it come those of earlier keys, once `semel rekey` has put them there, so that these keys can be taken away. A record's recipe names its
//! secret by id.
//!
//! Nothing is ever replaced: the first secret that is stored stays.

use super::{Engine, Shared};
use crate::fingerprint::{FingerprintSecret, Recipe};
use crate::identity::RecipeId;
use crate::seal::{Keyring, SealingKey, open_secret, seal_secret, sealed_by};
use crate::store::StoreError;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// More secrets than a store ever has under the names of one key: one for each key before it.
const MOST: usize = 1_000;

/// The secrets that were met, and what is in force.
#[derive(Default)]
pub(super) struct FingerprintSecrets {
    /// None: to be asked for.
    in_force: RwLock<Option<Arc<InForce>>>,
    known: RwLock<HashMap<String, Arc<FingerprintSecret>>>,
}

/// What new fingerprints are keyed with.
struct InForce {
    secret: Arc<FingerprintSecret>,
    /// Recipes by the ids that they have without it. Few: one per configured operation.
    recipes: RwLock<HashMap<RecipeId, Arc<Recipe>>>,
}

impl FingerprintSecrets {
    /// Another key may seal now.
    pub(super) fn forget(&self) {
        *self.in_force.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn in_force(&self) -> Option<Arc<InForce>> {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn known(&self, id: &str) -> Option<Arc<FingerprintSecret>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn learn(&self, secret: &Arc<FingerprintSecret>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(secret.id().to_owned(), Arc::clone(secret));
    }
}

/// Under whose names a secret is: of a key that seals it, or of none.
#[derive(Clone, Copy)]
enum Place<'k> {
    Plain,
    Sealed(&'k SealingKey),
}

impl<'k> Place<'k> {
    /// Where new ones are kept.
    fn now(keyring: Option<&'k Keyring>) -> Self {
        keyring.and_then(Keyring::sealing_key).map_or(Self::Plain, Self::Sealed)
    }

    fn name(self, number: usize) -> String {
        match self {
            Self::Plain => format!("secret/fingerprints/plain/{number}"),
            Self::Sealed(key) => format!("secret/fingerprints/sealed/{}/{number}", key.id()),
        }
    }

    fn kept(self, name: &str, secret: &[u8]) -> Bytes {
        match self {
            Self::Plain => Bytes::copy_from_slice(secret),
            Self::Sealed(key) => seal_secret(key, name, secret),
        }
    }

    fn opened(self, keyring: Option<&Keyring>, name: &str, kept: Bytes) -> Result<Bytes, StoreError> {
        match self {
            // An attacker has put another one in its place.
            Self::Sealed(key) if sealed_by(&kept) != Some(key.id()) => {
                Err(StoreError::Damaged(format!("\"{name}\" in the store is not sealed by its key")))
            }
            _ => open_secret(keyring, name, kept),
        }
    }
}

/// A secret as it is, and ready to be used.
struct Opened {
    bytes: Bytes,
    secret: Arc<FingerprintSecret>,
}

impl Opened {
    fn of(bytes: Bytes) -> Result<Self, StoreError> {
        let secret =
            FingerprintSecret::new(&bytes).map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(Self { bytes, secret: Arc::new(secret) })
    }
}

impl Shared {
    /// The recipe, keyed with the secret in force; one that has a secret of its own stays as it is.
    async fn keyed(&self, recipe: &Arc<Recipe>) -> Result<Arc<Recipe>, StoreError> {
        if recipe.secret_id().is_some() {
            return Ok(Arc::clone(recipe));
        }
        let in_force = match self.fingerprint_secrets.in_force() {
            Some(in_force) => in_force,
            None => Box::pin(self.learn_secret()).await?,
        };
        let known =
            in_force.recipes.read().unwrap_or_else(PoisonError::into_inner).get(&recipe.id()).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // What was built without a secret can be built with one.
        let keyed = recipe.keyed(&in_force.secret).map_err(|error| StoreError::Damaged(error.to_string()))?;
        let mut recipes = in_force.recipes.write().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(recipes.entry(recipe.id()).or_insert_with(|| Arc::new(keyed))))
    }

    async fn learn_secret(&self) -> Result<Arc<InForce>, StoreError> {
        let keyring = self.keyring();
        let secret = self.secret_for(keyring.as_deref()).await?;
        self.fingerprint_secrets.learn(&secret);
        let learnt = Arc::new(InForce { secret, recipes: RwLock::default() });
        let mut in_force = self.fingerprint_secrets.in_force.write().unwrap_or_else(PoisonError::into_inner);
        let same = match (self.keyring(), keyring) {
            (None, None) => true,
            (Some(now), Some(then)) => Arc::ptr_eq(&now, &then),
            _ => false,
        };
        // The keys have changed meanwhile: this one serves the request that asked, and the next asks again.
        if same {
            *in_force = Some(Arc::clone(&learnt));
        }
        Ok(learnt)
    }

    /// The secret for new fingerprints by these keys; created if missing.
    async fn secret_for(&self, keyring: Option<&Keyring>) -> Result<Arc<FingerprintSecret>, StoreError> {
        let place = Place::now(keyring);
        let name = place.name(0);
        let own = self.environment.secret();
        let kept = self.store.remember(name.clone(), place.kept(&name, &own)).await?;
        Ok(Opened::of(place.opened(keyring, &name, kept)?)?.secret)
    }

    /// The recipe of a record with its secret, if that is in the store and opens.
    pub(super) async fn with_secret(&self, recipe: &Recipe) -> Result<Option<Arc<Recipe>>, StoreError> {
        let Some(id) = recipe.secret_id() else { return Ok(None) };
        let mut secret = self.fingerprint_secrets.known(id);
        if secret.is_none() {
            let keyring = self.keyring();
            for place in places(keyring.as_deref()) {
                let kept = self.secrets_at(place, keyring.as_deref()).await?;
                kept.iter().for_each(|kept| self.fingerprint_secrets.learn(&kept.secret));
            }
            secret = self.fingerprint_secrets.known(id);
        }
        Ok(secret.and_then(|secret| recipe.keyed(&secret).ok()).map(Arc::new))
    }

    /// All secrets under the names of one key, or of none.
    async fn secrets_at(
        &self,
        place: Place<'_>,
        keyring: Option<&Keyring>,
    ) -> Result<Vec<Opened>, StoreError> {
        let mut found = Vec::new();
        while found.len() < MOST {
            let name = place.name(found.len());
            let Some(kept) = self.store.recall(name.clone()).await? else { break };
            found.push(Opened::of(place.opened(keyring, &name, kept)?)?);
        }
        Ok(found)
    }
}

fn places(keyring: Option<&Keyring>) -> impl Iterator<Item = Place<'_>> {
    let sealed = keyring.into_iter().flat_map(Keyring::keys).map(Place::Sealed);
    std::iter::once(Place::Plain).chain(sealed)
}

impl Engine {
    /// The recipe, keyed with a secret that all instances on this store share, and which is made by the first of them. A recipe with a
    /// secret of its own stays as it is. Asks the store once, and again after the keyring has changed.
    ///
    /// With a keyring that seals, the secret is sealed in the store; without, it is there in the clear.
    ///
    /// # Errors
    /// The store did not answer, or its secret does not open.
    pub async fn keyed_recipe(&self, recipe: &Arc<Recipe>) -> Result<Arc<Recipe>, StoreError> {
        self.shared.keyed(recipe).await
    }

    /// Sees to it that there is a secret for fingerprints in the store, as an engine with this keyring would use it, and that it opens.
    ///
    /// # Errors
    /// As [`keyed_recipe`](Self::keyed_recipe).
    pub async fn check_fingerprint_secret(&self, keyring: Option<&Keyring>) -> Result<(), StoreError> {
        self.shared.secret_for(keyring).await.map(drop)
    }

    /// Keeps the secrets of fingerprints under the key that seals now, too, or in the clear where none does, so that other keys can be
    /// taken away; how many were not there.
    ///
    /// # Errors
    /// The store did not answer, or a secret does not open.
    pub async fn rekey_fingerprint_secrets(&self) -> Result<usize, StoreError> {
        let keyring = self.shared.keyring();
        let keyring = keyring.as_deref();
        let target = Place::now(keyring);
        let mut secrets = Vec::new();
        for place in places(keyring) {
            // One that is stored in the clear stays: reading it needs no key.
            if matches!((place, target), (Place::Plain, Place::Sealed(_))) {
                continue;
            }
            secrets.extend(self.shared.secrets_at(place, keyring).await?);
        }
        let mut count = 0;
        // The first is for new fingerprints: none but one of its own.
        if !secrets.is_empty() {
            self.shared.secret_for(keyring).await?;
        }
        for Opened { bytes, secret } in secrets {
            let mut there = self.shared.secrets_at(target, keyring).await?;
            while !there.iter().any(|other| other.secret == secret) && there.len() < MOST {
                let name = target.name(there.len());
                let kept = target.kept(&name, &bytes);
                let kept = self.shared.store.remember(name.clone(), kept).await?;
                there.push(Opened::of(target.opened(keyring, &name, kept)?)?);
                count += usize::from(there.last().is_some_and(|last| last.secret == secret));
            }
        }
        Ok(count)
    }
}
