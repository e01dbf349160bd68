//! An HTTP request as it is fingerprinted, and what all versions of the rules share.

use super::Recipe;
use super::parts::{Gathered, Parts};
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
