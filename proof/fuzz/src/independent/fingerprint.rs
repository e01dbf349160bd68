//! The hash of what was asked for: parts with a name and a length each, by another library.

use super::json::Json;
use super::shape::Rules;
use ring::{digest, hmac};

/// Everything that counts of a request.
pub(crate) struct Asked<'a> {
    pub(crate) recipe_text: &'a str,
    pub(crate) secret: Option<&'a [u8]>,
    pub(crate) operation: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// Those that the recipe names, sorted, each with its values.
    pub(crate) headers: &'a [(&'a str, Vec<&'a str>)],
    pub(crate) media_type: &'a str,
    pub(crate) content_encoding: Option<&'a str>,
    pub(crate) body: &'a [u8],
    /// What the recipe leaves of the body, if it is clean JSON.
    pub(crate) canonical: Option<&'a str>,
}

pub(crate) fn fingerprint(asked: &Asked<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    piece(&mut bytes, b"semel fingerprint 1");
    part(&mut bytes, "recipe", &sha256(asked.recipe_text.as_bytes())[..16]);
    part(&mut bytes, "operation", asked.operation.as_bytes());
    part(&mut bytes, "method", asked.method.as_bytes());
    part(&mut bytes, "path", asked.path.as_bytes());
    piece(&mut bytes, b"query");
    pairs(&mut bytes, asked.query.as_bytes());
    piece(&mut bytes, b"headers");
    count(&mut bytes, asked.headers.len());
    for (name, values) in asked.headers {
        header(&mut bytes, name, values);
    }
    part(&mut bytes, "media type", asked.media_type.as_bytes());
    header(&mut bytes, "content-encoding", asked.content_encoding.as_slice());
    match (asked.media_type, asked.content_encoding) {
        ("application/json", None) => match asked.canonical {
            Some(text) => part(&mut bytes, "json", &sha256(text.as_bytes())),
            None => part(&mut bytes, "unclean json", &sha256(asked.body)),
        },
        ("application/x-www-form-urlencoded", None) => {
            piece(&mut bytes, b"form");
            pairs(&mut bytes, asked.body);
        }
        _ => part(&mut bytes, "bytes", &sha256(asked.body)),
    }
    match asked.secret {
        Some(secret) => hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &bytes).as_ref().to_vec(),
        None => sha256(&bytes),
    }
}

/// The value of a text, if that has a canonical form.
pub(crate) fn clean(text: &[u8]) -> Option<Json> {
    let value = Json::parse(text, semel::canonical::MAX_DEPTH)?;
    (!value.has_twins() && value.has_spellable_numbers()).then_some(value)
}

/// The canonical form of what the rules leave of a value.
pub(crate) fn canonical(value: &Json, rules: &Rules) -> String {
    let mut written = String::new();
    rules.apply(value).write(&mut written);
    written
}

/// Pairs of a form or a query: decoded, sorted by name, values of one name in their order.
fn pairs(bytes: &mut Vec<u8>, text: &[u8]) {
    let segments = text.split(|byte| *byte == b'&').filter(|segment| !segment.is_empty());
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = segments
        .map(|segment| {
            let mut halves = segment.splitn(2, |byte| *byte == b'=');
            let mut half = || decoded(halves.next().unwrap_or_default());
            (half(), half())
        })
        .collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    count(bytes, pairs.len());
    for (name, value) in pairs {
        piece(bytes, &name);
        piece(bytes, &value);
    }
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut meant = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let escaped = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match (text[at], escaped) {
            (b'%', Some(digits)) => {
                meant.push(u8::from_str_radix(digits, 16).unwrap_or_default());
                at += 2;
            }
            (b'+', _) => meant.push(b' '),
            (other, _) => meant.push(other),
        }
        at += 1;
    }
    meant
}

fn header(bytes: &mut Vec<u8>, name: &str, values: &[&str]) {
    piece(bytes, name.as_bytes());
    count(bytes, values.len());
    values.iter().for_each(|value| piece(bytes, value.as_bytes()));
}

fn part(bytes: &mut Vec<u8>, name: &str, content: &[u8]) {
    piece(bytes, name.as_bytes());
    piece(bytes, content);
}

fn piece(bytes: &mut Vec<u8>, content: &[u8]) {
    count(bytes, content.len());
    bytes.extend_from_slice(content);
}

fn count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend_from_slice(&(count as u64).to_be_bytes());
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}
