//! The fingerprint of an HTTP request, by the version of the rules that its recipe names.

use super::parts::Parts;
use super::recipe::Version;
use super::{FingerprintSecret, HttpRequest, Recipe, RecipeUnavailable, version_1, version_2};
use crate::Fingerprint;
use crate::canonical::CheckedJson;

/// Adds what counts of a request.
type Add = fn(&mut Parts, &Recipe, &HttpRequest<'_>, Option<&CheckedJson>);

/// The fingerprint of a request by a recipe: a hash over everything that counts, each part with its name and length.
///
/// # Errors
/// [`RecipeUnavailable`] where the recipe was keyed with another secret, or is not for requests.
pub fn fingerprint(
    recipe: &Recipe,
    secret: Option<&FingerprintSecret>,
    request: &HttpRequest<'_>,
) -> Result<Fingerprint, RecipeUnavailable> {
    fingerprint_of_checked(recipe, secret, request, None)
}

/// The same, of a request whose JSON body was checked before: it is not read through again. Anything else that was checked is ignored.
///
/// # Errors
/// As [`fingerprint`].
pub fn fingerprint_of_checked(
    recipe: &Recipe,
    secret: Option<&FingerprintSecret>,
    request: &HttpRequest<'_>,
    checked: Option<&CheckedJson>,
) -> Result<Fingerprint, RecipeUnavailable> {
    if recipe.command().is_some() {
        return Err(RecipeUnavailable::OtherSubject);
    }
    let (purpose, add): (_, Add) = match recipe.version() {
        Version::One => {
            ("semel fingerprint 1", |parts, recipe, request, _| version_1::add(parts, recipe, request))
        }
        Version::Two => ("semel fingerprint 2", version_2::add),
        Version::Three => ("semel fingerprint 3", version_2::add),
    };
    let mut parts = Parts::new(purpose, recipe.keyed_with(secret)?);
    parts.part("recipe", &recipe.id().0);
    parts.part("operation", request.operation.as_bytes());
    parts.part("method", request.method.as_str().as_bytes());
    parts.part("path", request.path.as_bytes());
    add(&mut parts, recipe, request, checked);
    Ok(Fingerprint(parts.finish()))
}
