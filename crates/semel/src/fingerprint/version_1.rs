//! How fingerprints of requests were made at first. Records made so are in stores: nothing of it may change.
//!
//! No parameter of a media type counts, forms are always sorted, and multipart bodies go by their bytes. Several different requests
//! have one fingerprint that way, which is why there is a second version.

use super::form::add_pairs;
use super::parts::Parts;
use super::request::{add_headers, is_json, json_digest};
use super::{HttpRequest, Recipe};
use crate::canonical::Shape;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// Adds what counts of a request.
pub(super) fn add(parts: &mut Parts, recipe: &Recipe, request: &HttpRequest<'_>) {
    parts.piece(b"query");
    add_pairs(parts, request.query.unwrap_or_default().as_bytes());
    add_headers(parts, recipe, request);
    let media_type = media_type(request.headers);
    parts.part("media type", &media_type);
    // The same bytes in another coding are another body.
    parts.header(CONTENT_ENCODING.as_str(), request.headers);
    add_body(parts, recipe.shape(), &media_type, request);
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

fn add_body(parts: &mut Parts, shape: &Shape, media_type: &[u8], request: &HttpRequest<'_>) {
    // A body in a content coding is not the text that its media type says, before it is decoded.
    if !request.headers.contains_key(CONTENT_ENCODING) {
        if is_json(media_type) && !media_type.contains(&b',') {
            // What has no canonical form goes by its bytes and under a name of its own: it matches a retry of itself,
            // and never a clean body, whatever its bytes are.
            return match json_digest(request.body, shape, None) {
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
