//! The fingerprint of an HTTP request.

use super::form::add_pairs;
use super::parts::{Gathered, Parts};
use super::{FingerprintSecret, Recipe, RecipeUnavailable};
use crate::Fingerprint;
use crate::canonical::{Shape, write_canonical};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

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
    let mut parts = Parts::new("semel fingerprint 1", recipe.keyed_with(secret)?);
    parts.part("recipe", &recipe.id().0);
    parts.part("operation", request.operation.as_bytes());
    parts.part("method", request.method.as_str().as_bytes());
    parts.part("path", request.path.as_bytes());
    parts.piece(b"query");
    add_pairs(&mut parts, request.query.unwrap_or_default().as_bytes());
    parts.piece(b"headers");
    parts.count(recipe.headers().count());
    for name in recipe.headers() {
        parts.header(name, request.headers);
    }
    let media_type = media_type(request.headers);
    parts.part("media type", &media_type);
    // The same bytes in another coding are another body.
    parts.header(CONTENT_ENCODING.as_str(), request.headers);
    add_body(&mut parts, recipe.shape(), &media_type, request);
    Ok(Fingerprint(parts.finish()))
}

/// The media type without its parameters, in lower case. Several lines make one that is no known type.
fn media_type(headers: &HeaderMap) -> Cow<'_, [u8]> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter().map(|value| essence(value.as_bytes()));
    match (lines.next(), lines.next()) {
        (None, _) => Cow::Borrowed(&[]),
        // Most clients write it in lower case, and it need not be copied.
        (Some(line), None) if !line.iter().any(u8::is_ascii_uppercase) => Cow::Borrowed(line),
        (Some(line), None) => Cow::Owned(line.to_ascii_lowercase()),
        (Some(first), Some(second)) => {
            let lines = [first, second].into_iter().chain(lines).map(<[u8]>::to_ascii_lowercase);
            Cow::Owned(lines.collect::<Vec<_>>().join(&b','))
        }
    }
}

fn essence(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

fn is_json(media_type: &[u8]) -> bool {
    media_type == b"application/json" || (media_type.ends_with(b"+json") && !media_type.contains(&b','))
}

fn add_body(parts: &mut Parts, shape: &Shape, media_type: &[u8], request: &HttpRequest<'_>) {
    // A body in a content coding is not the text that its media type says, before it is decoded.
    if !request.headers.contains_key(CONTENT_ENCODING) {
        if is_json(media_type) {
            // What has no canonical form goes by its bytes and under a name of its own: it matches a retry of itself,
            // and never a clean body, whatever its bytes are.
            return match json_digest(request.body, shape) {
                Some(digest) => parts.part("json", &digest),
                None => parts.part("unclean json", &Sha256::digest(request.body)),
            };
        }
        if media_type == b"application/x-www-form-urlencoded" {
            parts.piece(b"form");
            return add_pairs(parts, request.body);
        }
    }
    parts.part("bytes", &Sha256::digest(request.body));
}

/// The digest of the canonical text, which itself is never held in memory.
pub(super) fn json_digest(text: &[u8], shape: &Shape) -> Option<[u8; 32]> {
    let mut gathered = Gathered::new();
    write_canonical(text, shape, &mut gathered).ok()?;
    Some(gathered.finish())
}
