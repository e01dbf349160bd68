//! Who asks for what, under which key.

use super::keys::Stored;
use super::style::Style;
use super::{Fault, Node, TOKENS};
use http::HeaderMap;
use http::Uri;
use http::request::Parts;
use serde_json::Value;

/// The token of a caller, if it is valid.
pub(super) fn caller(node: &Node, headers: &HeaderMap) -> Option<&'static str> {
    if node.style == Style::Open {
        return Some(TOKENS[0]);
    }
    let given = headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?;
    let token = TOKENS.into_iter().find(|token| *token == given)?;
    let revoked = token == TOKENS[0] && node.directory.join("revoked").exists();
    (!revoked).then_some(token)
}

/// The account that a token belongs to.
pub(super) fn account(token: &str) -> &str {
    token.split('-').next().unwrap()
}

/// The path as the router sees it, whatever the client wrote.
pub(super) fn route(uri: &Uri) -> String {
    let path = uri.path().split(';').next().unwrap();
    let mut decoded = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        match after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(char::from(byte));
                rest = &after[2..];
            }
            None => rest = after,
        }
    }
    decoded.push_str(rest);
    let segments: Vec<&str> = decoded.split('/').filter(|segment| !segment.is_empty()).collect();
    format!("/{}", segments.join("/"))
}

/// The key; `None` without one.
pub(super) fn key(node: &Node, headers: &HeaderMap) -> Result<Option<String>, Stored> {
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(first) = given.next() else { return Ok(None) };
    if given.next().is_some() && node.fault != Some(Fault::FirstOfTwoKeysCounts) {
        return Err(Stored::problem(400, "several keys"));
    }
    let invalid = || Stored::problem(400, "the key is invalid");
    let key = first.to_str().map_err(|_| invalid())?;
    if node.fault == Some(Fault::QuotedKeyCountsAsNone) && key.starts_with('"') {
        return Ok(None);
    }
    let key = key.strip_prefix('"').and_then(|key| key.strip_suffix('"')).unwrap_or(key);
    match (node.fault, key.len()) {
        (Some(Fault::EmptyKeyCountsAsNone), 0) => return Ok(None),
        (Some(Fault::LongKeyIs500), 256..) => return Err(Stored::problem(500, "value too long for type")),
        (_, 1..=255) => {}
        _ => return Err(invalid()),
    }
    Ok(Some(match node.fault {
        Some(Fault::KeyTruncatedAt64) => key.chars().take(64).collect(),
        Some(Fault::KeyCaseFolded) => key.to_lowercase(),
        _ => key.to_owned(),
    }))
}

/// The key at `/key` in the body.
pub(super) fn key_in_body(text: &[u8]) -> Result<Option<String>, Stored> {
    let body: Value = serde_json::from_slice(text).unwrap_or_default();
    match &body["key"] {
        Value::Null => Ok(None),
        Value::String(key) if (1..=255).contains(&key.len()) => Ok(Some(key.clone())),
        _ => Err(Stored::problem(400, "the key is invalid")),
    }
}

/// Whose key it is, and of which operation.
pub(super) fn scope(node: &Node, token: Option<&str>, head: &Parts, key: &str) -> String {
    let who = match (node.fault, token) {
        (Some(Fault::CallerNotScoped | Fault::ReplayBeforeAuthentication | Fault::ReplayToRevoked), _)
        | (_, None) => "",
        (Some(Fault::ScopedByToken), Some(token)) => token,
        (_, Some(token)) => account(token),
    };
    let operation = match node.fault {
        Some(Fault::KeyAcrossOperations) => String::new(),
        Some(Fault::ScopedByWrittenPath) => format!("{} {}", head.method, head.uri.path()),
        Some(Fault::MethodIgnored) => route(&head.uri),
        _ => format!("{} {}", head.method, route(&head.uri)),
    };
    format!("{who} {operation} {key}")
}

/// What makes two requests the same.
pub(super) fn fingerprint(node: &Node, token: Option<&str>, head: &Parts, text: &str) -> String {
    let who = match node.fault {
        // The key stands for one request of anybody; whose it was is not looked at.
        Some(Fault::CallerNotScoped | Fault::ReplayBeforeAuthentication | Fault::ReplayToRevoked) => "",
        _ => token.map_or("", account),
    };
    let query = match node.fault {
        Some(Fault::QueryIgnored | Fault::FirstAnswerForAnotherBody) => "",
        _ => head.uri.query().unwrap_or_default(),
    };
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    if node.style == Style::Ucp {
        return format!("{who} {query} {text}");
    }
    let body = match node.fault {
        Some(Fault::FirstAnswerForAnotherBody) => String::new(),
        Some(Fault::BytesCompared) => text.to_owned(),
        Some(Fault::NumbersAreDoubles) => doubles(body).to_string(),
        _ => body.to_string(),
    };
    match node.fault {
        Some(Fault::EveryHeaderCounts) => format!("{who} {query} {body} {:?}", head.headers),
        _ => format!("{who} {query} {body}"),
    }
}

fn doubles(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, doubles(value))).collect(),
        other => other,
    }
}
