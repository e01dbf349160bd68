//! What can be fingerprinted now, and again under the recipe of a record that is found later.

use super::{FingerprintSecret, HttpRequest, Recipe, RecipeUnavailable, fingerprint};
use crate::{Fingerprint, KeyScope};
use std::sync::Arc;

/// What is asked for, in a form that can be hashed by any recipe.
///
/// The engine first hashes by the configured recipe. If it then finds a record of another recipe, it loads that one's
/// text from the store and hashes again by it; what cannot be hashed so is not comparable, rather than different.
pub trait Subject: Send + Sync {
    /// The recipe that new records are made by.
    fn recipe(&self) -> &Recipe;

    /// The fingerprint by some recipe, the configured one or that of an old record.
    ///
    /// # Errors
    /// [`RecipeUnavailable`] where it cannot be computed as it was then.
    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable>;

    /// The same as it was made when the operation was called by another name.
    ///
    /// The default is for fingerprints that the operation's name is no part of. Where it is a part, and this is left out, a retry under a
    /// former name is refused as another request.
    ///
    /// # Errors
    /// As [`fingerprint_under`](Self::fingerprint_under).
    fn fingerprint_as(&self, operation: &str, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        let _no_part_of_it = operation;
        self.fingerprint_under(recipe)
    }

    /// The names that the operation had before, under which the key may be known. Default: none.
    fn former_operations(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The scope that keys of the operation had before, in which the key may be known. By default none: then nobody looks.
    fn former_scope(&self) -> Option<KeyScope> {
        None
    }
}

/// An HTTP request as a subject. All headers are there: an older recipe may count others than the one of today.
#[derive(Clone, Copy)]
pub struct RequestSubject<'a> {
    /// The recipe of today.
    pub recipe: &'a Recipe,
    /// The secret, where the recipe has one.
    pub secret: Option<&'a FingerprintSecret>,
    /// The request.
    pub request: HttpRequest<'a>,
}

impl Subject for RequestSubject<'_> {
    fn recipe(&self) -> &Recipe {
        self.recipe
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        fingerprint(recipe, self.secret, &self.request)
    }

    fn fingerprint_as(&self, operation: &str, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        fingerprint(recipe, self.secret, &HttpRequest { operation, ..self.request })
    }
}
