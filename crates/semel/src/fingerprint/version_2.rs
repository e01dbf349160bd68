//! How fingerprints of new requests are made, by the second version and the third: what a service may read in two ways is never taken
//! for one.

use super::form::add_form;
use super::media_type::MediaType;
use super::parts::Parts;
use super::request::{add_headers, is_json, json_digest};
use super::{HttpRequest, Recipe, host, multipart};
use crate::canonical::CheckedJson;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use sha2::{Digest, Sha256};

/// A body by what it says, or by its bytes.
enum Content {
    Json([u8; 32]),
    /// Text without a canonical form: it matches a retry of itself, and never a clean body, whatever its bytes are.
    UncleanJson([u8; 32]),
    Form,
    Multipart([u8; 32]),
    Bytes([u8; 32]),
}

/// Adds what counts of a request.
pub(super) fn add(
    parts: &mut Parts,
    recipe: &Recipe,
    request: &HttpRequest<'_>,
    checked: Option<&CheckedJson>,
) {
    parts.piece(b"query");
    add_form(parts, request.query.unwrap_or_default().as_bytes());
    add_headers(parts, recipe, request);
    if let Some(aliases) = recipe.host_aliases() {
        parts.piece(b"host");
        host::add(parts, aliases, request.host);
    }
    // The same bytes in another coding are another body.
    parts.header(CONTENT_ENCODING.as_str(), request.headers);
    let mut lines = request.headers.get_all(CONTENT_TYPE).iter();
    let media_type = match (lines.next(), lines.next()) {
        (Some(line), None) => MediaType::parse(line.as_bytes()),
        _ => None,
    };
    let content = content(recipe, media_type.as_ref(), request, checked);
    match &media_type {
        Some(media_type) => add_media_type(parts, media_type, &content),
        // None, several, or one that is not written as it should be: by its bytes.
        None => {
            parts.piece(b"media type as sent");
            parts.header(CONTENT_TYPE.as_str(), request.headers);
        }
    }
    match content {
        Content::Json(digest) => parts.part("json", &digest),
        Content::UncleanJson(digest) => parts.part("unclean json", &digest),
        Content::Form => {
            parts.piece(b"form");
            add_form(parts, request.body);
        }
        Content::Multipart(digest) => parts.part("multipart", &digest),
        Content::Bytes(digest) => parts.part("bytes", &digest),
    }
}

fn content(
    recipe: &Recipe,
    media_type: Option<&MediaType<'_>>,
    request: &HttpRequest<'_>,
    checked: Option<&CheckedJson>,
) -> Content {
    let bytes = || Content::Bytes(Sha256::digest(request.body).into());
    if recipe.compares_bytes() {
        return bytes();
    }
    // A body in a content coding is not the text that its media type says, before it is decoded; and text in another charset is not
    // what its bytes say in UTF-8.
    let Some(media_type) = media_type.filter(|media_type| media_type.is_utf_8()) else { return bytes() };
    if request.headers.contains_key(CONTENT_ENCODING) {
        return bytes();
    }
    match media_type.essence() {
        essence if is_json(essence) => match json_digest(request.body, recipe.shape(), checked) {
            Some(digest) => Content::Json(digest),
            None => Content::UncleanJson(Sha256::digest(request.body).into()),
        },
        b"application/x-www-form-urlencoded" => Content::Form,
        b"multipart/form-data" => {
            let boundary = media_type.boundary();
            boundary
                .and_then(|boundary| multipart::digest(&boundary, request.body))
                .map_or_else(bytes, Content::Multipart)
        }
        _ => bytes(),
    }
}

/// Adds the type and those of its parameters that count: all of them, but for those that say nothing of how this body is read.
fn add_media_type(parts: &mut Parts, media_type: &MediaType<'_>, content: &Content) {
    parts.part("media type", media_type.essence());
    for (name, value) in media_type.parameters() {
        let counts = match (content, &*name) {
            (Content::Bytes(_), _) => true,
            // It is UTF-8, which is what these types are in without it.
            (_, b"charset") => false,
            (Content::Multipart(_), b"boundary") => false,
            _ => true,
        };
        if counts {
            parts.count(1);
            parts.piece(&name);
            parts.piece(&value);
        }
    }
    parts.count(0);
}
