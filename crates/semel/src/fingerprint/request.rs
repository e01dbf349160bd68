//! The fingerprint of an HTTP request.

use super::parts::{Gathered, Parts};
use super::recipe::Version;
use super::{FingerprintSecret, Recipe, RecipeUnavailable, version_1, version_2};
use crate::Fingerprint;
use crate::canonical::{Shape, write_canonical};
use http::{HeaderMap, Method};

/// An HTTP request, as far as it can count.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// The operation that it was matched to.
    pub operation: &'a str,
    /// Its method.
    pub method: &'a Method,
    /// Its path, as it was sent.
    pub path: &'a str,
    /// Its query, without the question mark.
    pub query: Option<&'a str>,
    /// The host that the client asked for, with its port if it named one; it counts where the recipe says so
    /// ([`RecipeBuilder::host`](super::RecipeBuilder::host)). A list, where proxies have appended to each other.
    pub host: Option<&'a [u8]>,
    /// All of its headers; the recipe chooses.
    pub headers: &'a HeaderMap,
    /// Its whole body.
    pub body: &'a [u8],
}

/// The fingerprint of a request by a recipe: a hash over everything that counts, each part with its name and length.
///
/// # Errors
/// [`RecipeUnavailable`] where the recipe was keyed with another secret, or is not for requests.
pub fn fingerprint(
    recipe: &Recipe,
    secret: Option<&FingerprintSecret>,
    request: &HttpRequest<'_>,
) -> Result<Fingerprint, RecipeUnavailable> {
    if recipe.command().is_some() {
        return Err(RecipeUnavailable::OtherSubject);
    }
    let (purpose, add): (_, fn(&mut Parts, &Recipe, &HttpRequest<'_>)) = match recipe.version() {
        Version::One => ("semel fingerprint 1", version_1::add),
        Version::Two => ("semel fingerprint 2", version_2::add),
    };
    let mut parts = Parts::new(purpose, recipe.keyed_with(secret)?);
    parts.part("recipe", &recipe.id().0);
    parts.part("operation", request.operation.as_bytes());
    parts.part("method", request.method.as_str().as_bytes());
    parts.part("path", request.path.as_bytes());
    add(&mut parts, recipe, request);
    Ok(Fingerprint(parts.finish()))
}

/// Adds the headers that the recipe chooses.
pub(super) fn add_headers(parts: &mut Parts, recipe: &Recipe, request: &HttpRequest<'_>) {
    parts.piece(b"headers");
    parts.count(recipe.headers().count());
    for name in recipe.headers() {
        parts.header(name, request.headers);
    }
}

pub(super) fn is_json(essence: &[u8]) -> bool {
    essence == b"application/json" || essence.ends_with(b"+json")
}

/// The digest of the canonical text, which itself is never held in memory.
pub(super) fn json_digest(text: &[u8], shape: &Shape) -> Option<[u8; 32]> {
    let mut gathered = Gathered::new();
    write_canonical(text, shape, &mut gathered).ok()?;
    Some(gathered.finish())
}
