//! The hash of what was asked for: parts with a name and a length each, by another library.

use super::content::{MediaType, host, parts};
use super::json::Json;
use super::shape::Rules;
use ring::{digest, hmac};

/// Everything that counts of a request.
pub(crate) struct ConnectionOptions<'a> {
    pub(crate) version: u8,
    /// The recipe looks at nothing but the bytes of a body.
    pub(crate) by_bytes: bool,
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

pub(crate) fn fingerprint(asked: &ConnectionOptions<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    piece(&mut bytes, format!("semel fingerprint {}", asked.version).as_bytes());
    part(&mut bytes, "recipe", &sha256(asked.recipe_text.as_bytes())[..16]);
    part(&mut bytes, "operation", asked.operation.as_bytes());
    part(&mut bytes, "method", asked.method.as_bytes());
    part(&mut bytes, "path", asked.path.as_bytes());
    let pairs = if asked.version == 1 { pairs } else { pairs_2 };
    piece(&mut bytes, b"query");
    pairs(&mut bytes, asked.query.as_bytes());
    piece(&mut bytes, b"headers");
    count(&mut bytes, asked.headers.len());
    for (name, values) in asked.headers {
        header(&mut bytes, name, values);
    }
    if asked.version == 1 {
        part(&mut bytes, "media type", asked.media_type.as_bytes());
        header(&mut bytes, "content-encoding", asked.content_encoding.as_slice());
    } else {
        header(&mut bytes, "content-encoding", asked.content_encoding.as_slice());
        part(&mut bytes, "media type", asked.media_type.as_bytes());
        // Its charset is UTF-8, which counts where the body goes by its bytes alone.
        if asked.by_bytes || asked.content_encoding.is_some() || asked.media_type == "text/plain" {
            count(&mut bytes, 1);
            part(&mut bytes, "charset", b"utf-8");
        }
        count(&mut bytes, 0);
    }
    match (asked.media_type, asked.content_encoding) {
        _ if asked.by_bytes => part(&mut bytes, "bytes", &sha256(asked.body)),
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

/// What counts of a request to a recipe of version 2 that counts the host.
pub(crate) struct Asked2<'a> {
    pub(crate) recipe_text: &'a str,
    /// Names that are one host, the first before the others.
    pub(crate) aliases: &'a [&'a str],
    pub(crate) host: &'a [u8],
    pub(crate) content_type: &'a [u8],
    pub(crate) query: &'a str,
    pub(crate) body: &'a [u8],
    /// The canonical form of the body, if it is clean JSON.
    pub(crate) canonical: Option<&'a str>,
}

pub(crate) fn fingerprint_2(asked: &Asked2<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    piece(&mut bytes, b"semel fingerprint 2");
    part(&mut bytes, "recipe", &sha256(asked.recipe_text.as_bytes())[..16]);
    part(&mut bytes, "operation", b"create_payment");
    part(&mut bytes, "method", b"POST");
    part(&mut bytes, "path", b"/payments");
    piece(&mut bytes, b"query");
    pairs_2(&mut bytes, asked.query.as_bytes());
    piece(&mut bytes, b"headers");
    count(&mut bytes, 0);
    piece(&mut bytes, b"host");
    // Each byte a character, so that none is lost.
    let text: String = asked.host.iter().map(|byte| char::from(*byte)).collect();
    count(&mut bytes, text.split(',').count());
    for name in text.split(',') {
        let name = host(name);
        let name = if asked.aliases.contains(&name.as_str()) { asked.aliases[0] } else { &name };
        piece(&mut bytes, &name.chars().map(|character| character as u8).collect::<Vec<_>>());
    }
    header(&mut bytes, "content-encoding", &[]);
    let media_type = MediaType::parse(asked.content_type);
    let utf_8 = media_type.as_ref().filter(|media_type| media_type.is_utf_8());
    let form = utf_8.filter(|media_type| media_type.essence == "multipart/form-data");
    let form = form.and_then(|media_type| parts(media_type.boundary()?, asked.body));
    let essence = utf_8.map(|media_type| media_type.essence.as_str()).unwrap_or_default();
    let is_json = essence == "application/json" || essence.ends_with("+json");
    let is_pairs = essence == "application/x-www-form-urlencoded";
    match &media_type {
        None => {
            piece(&mut bytes, b"media type as sent");
            piece(&mut bytes, b"content-type");
            count(&mut bytes, 1);
            piece(&mut bytes, asked.content_type);
        }
        Some(media_type) => {
            part(&mut bytes, "media type", media_type.essence.as_bytes());
            for (name, value) in &media_type.parameters {
                let by_meaning = is_json || is_pairs || form.is_some();
                let says_nothing = match name.as_str() {
                    "charset" => by_meaning,
                    "boundary" => form.is_some(),
                    _ => false,
                };
                if !says_nothing {
                    count(&mut bytes, 1);
                    part(&mut bytes, name, value);
                }
            }
            count(&mut bytes, 0);
        }
    }
    if let Some((parts, ends)) = form {
        let mut all = Vec::new();
        for (head, content) in parts {
            all.push(1);
            piece(&mut all, &head);
            piece(&mut all, &content);
        }
        all.extend([0, u8::from(ends)]);
        part(&mut bytes, "multipart", &sha256(&all));
    } else if is_json {
        match asked.canonical {
            Some(text) => part(&mut bytes, "json", &sha256(text.as_bytes())),
            None => part(&mut bytes, "unclean json", &sha256(asked.body)),
        }
    } else if is_pairs {
        piece(&mut bytes, b"form");
        pairs_2(&mut bytes, asked.body);
    } else {
        part(&mut bytes, "bytes", &sha256(asked.body));
    }
    sha256(&bytes)
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

/// The same by version 2: sorted only where no reader looks at the order.
fn pairs_2(bytes: &mut Vec<u8>, text: &[u8]) {
    let stray =
        |at: usize| !text.get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    if text.contains(&b';') || (0..text.len()).any(|at| text[at] == b'%' && stray(at)) {
        return part(bytes, "as sent", text);
    }
    let segments = text.split(|byte| *byte == b'&').filter(|segment| !segment.is_empty());
    let mut pairs: Vec<(Vec<u8>, Option<Vec<u8>>)> = segments
        .map(|segment| {
            let mut halves = segment.splitn(2, |byte| *byte == b'=');
            (decoded(halves.next().unwrap_or_default()), halves.next().map(decoded))
        })
        .collect();
    let names: Vec<Vec<u8>> = pairs.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let differ = names.iter().collect::<std::collections::HashSet<_>>().len() == names.len();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    if differ && names.iter().flatten().all(is_plain) {
        pairs.sort_by_key(|(name, _)| name.to_ascii_lowercase());
        piece(bytes, b"by name");
    } else {
        piece(bytes, b"in order");
    }
    count(bytes, pairs.len());
    for (name, value) in pairs {
        bytes.push(u8::from(value.is_some()));
        piece(bytes, &name);
        piece(bytes, &value.unwrap_or_default());
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
