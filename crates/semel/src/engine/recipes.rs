//! Fingerprint recipes: kept in the store, so that a retry is compared by the rules that its record was made with.

use super::Shared;
use crate::fingerprint::Recipe;
use crate::identity::RecipeId;
use crate::store::StoreError;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The recipes that are known to be in the store. Few: one per configured operation and deploy.
#[derive(Default)]
pub(super) struct Recipes {
    known: RwLock<HashMap<RecipeId, Arc<Recipe>>>,
}

impl Recipes {
    fn known(&self, id: RecipeId) -> Option<Arc<Recipe>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn learn(&self, id: RecipeId, recipe: Arc<Recipe>) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(id, recipe);
    }
}

impl Shared {
    /// Sees to it that the store has the recipe before the first record is made with it.
    pub(super) async fn keep_recipe(&self, id: RecipeId, recipe: &Recipe) -> Result<(), StoreError> {
        if self.recipes.known(id).is_some() {
            return Ok(());
        }
        self.store.remember(name_of(id), Bytes::from(recipe.to_text().to_owned())).await?;
        self.recipes.learn(id, Arc::new(recipe.clone()));
        Ok(())
    }

    /// The recipe that a record was made with; `None` if it cannot be had here.
    pub(super) async fn recipe(&self, id: RecipeId) -> Result<Option<Arc<Recipe>>, StoreError> {
        if let Some(recipe) = self.recipes.known(id) {
            return Ok(Some(recipe));
        }
        let Some(text) = self.store.recall(name_of(id)).await? else {
            return Ok(None);
        };
        let recipe = std::str::from_utf8(&text).ok().and_then(|text| Recipe::from_text(text).ok());
        // One that was altered would find every request to be another one.
        let recipe = recipe.filter(|recipe| recipe.id() == id).map(Arc::new);
        if let Some(recipe) = &recipe {
            self.recipes.learn(id, Arc::clone(recipe));
        }
        Ok(recipe)
    }

    /// The recipe of a record, with its secret, if that is one of the store's.
    pub(super) async fn keyed_as_stored(&self, recipe: &Recipe) -> Result<Option<Arc<Recipe>>, StoreError> {
        let keyed = self.with_secret(recipe).await?;
        if let Some(keyed) = &keyed {
            self.recipes.learn(keyed.id(), Arc::clone(keyed));
        }
        Ok(keyed)
    }
}

fn name_of(id: RecipeId) -> String {
    format!("recipe/{id}")
}
