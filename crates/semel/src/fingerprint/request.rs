//! An HTTP request as it is fingerprinted, and what all versions of the rules share.

use super::Recipe;
use super::media_type::MediaType;
use super::parts::{Gathered, Parts};
use crate::canonical::{CheckedJson, Shape, write_canonical};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
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

/// The digest of the canonical text, which itself is never held in memory. What was `checked` is not read through again.
pub(super) fn json_digest(text: &[u8], shape: &Shape, checked: Option<&CheckedJson>) -> Option<[u8; 32]> {
    let mut gathered = Gathered::new();
    match checked.filter(|checked| checked.is_of(text)) {
        Some(checked) => checked.write(shape, &mut gathered),
        None => write_canonical(text, shape, &mut gathered).ok()?,
    }
    Some(gathered.finish())
}

/// Whether the body of a request is JSON, by its headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonBody {
    /// It is of another type, or of none.
    No,
    /// It is, and its bytes are the text.
    Yes,
    /// It is, or some service may take it for it, and its bytes are not the text: it has a content coding, another charset than UTF-8, or
    /// a type that is not written as it should be.
    Encoded,
}

impl JsonBody {
    /// What these headers say.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut lines = headers.get_all(CONTENT_TYPE).iter();
        let media_type = match (lines.next(), lines.next()) {
            (Some(line), None) => MediaType::parse(line.as_bytes()),
            _ => None,
        };
        let Some(media_type) = media_type else {
            let names_json = |line: &[u8]| line.to_ascii_lowercase().windows(4).any(|part| part == b"json");
            let any = headers.get_all(CONTENT_TYPE).iter().any(|line| names_json(line.as_bytes()));
            return if any { Self::Encoded } else { Self::No };
        };
        if !is_json(media_type.essence()) {
            return Self::No;
        }
        let is_plain = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"identity");
        let codings = headers.get_all(CONTENT_ENCODING);
        match media_type.is_utf_8() && codings.iter().all(|coding| is_plain(coding.as_bytes())) {
            true => Self::Yes,
            false => Self::Encoded,
        }
    }
}
