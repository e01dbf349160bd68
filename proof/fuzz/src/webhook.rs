//! The signature of webhooks (Standard Webhooks).
//!
//! The first line of the input are the secrets that are configured, as letters of those that there are (`abc`); then come lines of the
//! three header fields, `i:`, `t:` and `s:`, and after an empty line the body. In a signature, `@a` stands for the right one by `a`.

use crate::independent::base64::standard;
use crate::under_test::webhook::{WebhookSecret, verified};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderValue};
use ring::hmac;

const SECRETS: [(char, &[u8]); 3] = [
    ('a', b"the first of the three secrets"),
    ('b', b"the second of them, which is a little longer"),
    ('c', b"the third is used by nobody yet!"),
];

/// What is verified is what was signed, and nothing else.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.split('\n');
    let configured = lines.next().unwrap_or_default();
    let configured: Vec<&[u8]> = SECRETS
        .iter()
        .filter(|(letter, _)| configured.contains(*letter))
        .map(|(_, secret)| *secret)
        .collect();
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
    let first = |name: &str| fields.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
    let (id, at) = (first("i").unwrap_or_default(), first("t").unwrap_or_default());
    let mut headers = HeaderMap::new();
    for (name, value) in &fields {
        let (name, value) = match *name {
            "i" => ("webhook-id", (*value).to_owned()),
            "t" => ("webhook-timestamp", (*value).to_owned()),
            "s" => ("webhook-signature", signed(value, id, at, body)),
            _ => continue,
        };
        let Ok(value) = HeaderValue::try_from(value) else { return };
        headers.append(name, value);
    }
    let secrets: Vec<WebhookSecret> = configured
        .iter()
        .filter_map(|secret| WebhookSecret::parse(&format!("whsec_{}", BASE64_STANDARD.encode(secret))).ok())
        .collect();
    assert_eq!(secrets.len(), configured.len(), "a secret is malformed");
    let found = verified(&headers, body.as_bytes(), &secrets);
    assert_eq!(found, expected(&headers, body.as_bytes(), &configured));
    parsed_secrets(body);
}

/// The signatures with the right ones in place of their letters.
fn signed(signatures: &str, id: &str, at: &str, body: &str) -> String {
    SECRETS.iter().fold(signatures.to_owned(), |signatures, (letter, secret)| {
        let place = format!("@{letter}");
        if !signatures.contains(&place) {
            return signatures;
        }
        let tag = tag(secret, id.as_bytes(), at.as_bytes(), body.as_bytes());
        signatures.replace(&place, &format!("v1,{}", BASE64_STANDARD.encode(tag)))
    })
}

fn tag(secret: &[u8], id: &[u8], at: &[u8], body: &[u8]) -> hmac::Tag {
    let content = [id, at, body].join(&b'.');
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), &content)
}

/// What the standard says, by another library.
fn expected(headers: &HeaderMap, body: &[u8], secrets: &[&[u8]]) -> Option<(String, i64)> {
    let once = |name: &str| {
        let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
        let [value] = values[..] else { return None };
        let printable = value.as_bytes().iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
        printable.then(|| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let (id, at, signatures) = (once("webhook-id")?, once("webhook-timestamp")?, once("webhook-signature")?);
    let proper_id =
        (1..=255).contains(&id.len()) && id.chars().all(|character| ('!'..='~').contains(&character));
    let proper_time = !at.is_empty() && at.chars().all(|digit| digit.is_ascii_digit());
    if !proper_id || !proper_time {
        return None;
    }
    let seconds: i64 = at
        .trim_start_matches('0')
        .parse()
        .or(if at.trim_start_matches('0').is_empty() { Ok(0) } else { Err(()) })
        .ok()?;
    let candidates = signatures.split(' ').filter_map(|one| standard(one.strip_prefix("v1,")?)).take(16);
    let right: Vec<Vec<u8>> = secrets
        .iter()
        .map(|secret| tag(secret, id.as_bytes(), at.as_bytes(), body).as_ref().to_vec())
        .collect();
    let genuine = candidates.into_iter().any(|candidate| right.contains(&candidate));
    genuine.then_some((id, seconds))
}

/// A secret is `whsec_` and 24 to 64 bytes in base64, and nothing else.
fn parsed_secrets(body: &str) {
    for line in body.split('\n').take(4) {
        let inner = line.trim().strip_prefix("whsec_").and_then(standard);
        let right = inner.is_some_and(|bytes| (24..=64).contains(&bytes.len()));
        assert_eq!(WebhookSecret::parse(line).is_ok(), right, "{line:?}");
    }
}
