//! Header fields: what is passed on, asked again, kept, replayed, and what is Semel's own.
//!
//! The first line of the input names fields that a policy wants to keep, with commas between them; each other line is a field,
//! `Name: value`.

use crate::independent::headers::{
    Lines, asked_again, is_identity, kept, may_be_kept, names_a_method, passed_on, told, trailing,
    without_ours,
};
use crate::under_test::{passing, tower_headers};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use semel::OperationId;

/// More fields than these teach nothing new.
const MOST: usize = 24;

/// The header by which tenants are told apart.
const TENANT: &str = "x-account-id";

/// What the filters leave is what the rules leave.
pub fn target(data: &[u8]) {
    let mut input = data.split(|byte| *byte == b'\n');
    let wanted = input.next().unwrap_or_default().split(|byte| *byte == b',');
    let wanted: Vec<HeaderName> =
        wanted.filter_map(|name| HeaderName::from_bytes(name).ok()).take(MOST).collect();
    let mut headers = HeaderMap::new();
    for line in input.take(MOST) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let field =
            (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(line[colon + 1..].trim_ascii()));
        if let (Ok(name), Ok(value)) = field {
            headers.append(name, value);
        }
    }
    let lines = lines_of(&headers);
    requests(&headers, &lines);
    answers(&headers, &lines, &wanted);
}

fn requests(headers: &HeaderMap, lines: &Lines<'_>) {
    let tenants = passing::Decisive::with([&HeaderName::from_static(TENANT)]);
    let keys = [HeaderName::from_static("idempotency-key")];
    let misspelt = headers.keys().any(|name| passing::misspelt_key(name.as_str(), &keys).is_some());
    let refused = misspelt || tenants.is_named_by_connection(headers);
    let mut passed = headers.clone();
    passing::drop_hop_by_hop(&mut passed);
    passing::drop_claims(&mut passed);
    assert_eq!((!refused).then(|| lines_of(&passed)), passed_on(lines, TENANT), "passed on");

    let mut trailers = headers.clone();
    passing::clean_trailers(&mut trailers, &tenants);
    assert_eq!(lines_of(&trailers), trailing(lines, TENANT), "trailers");
    for (name, _) in lines {
        assert_eq!(passing::is_identity(name), is_identity(name), "{name}");
        assert_eq!(passing::is_method_override(name), names_a_method(name), "{name}");
    }

    let mut asked = HeaderMap::new();
    passing::ask_again(
        &passing::ConnectionOptions::of(Version::HTTP_11, headers),
        &mut asked,
        Version::HTTP_11,
    );
    assert_eq!(lines_of(&asked), asked_again(lines), "asked again");
    let mut nothing = HeaderMap::new();
    passing::ask_again(
        &passing::ConnectionOptions::of(Version::HTTP_10, headers),
        &mut nothing,
        Version::HTTP_2,
    );
    assert!(!nothing.contains_key("upgrade") && !nothing.contains_key("connection"));

    let (id, attempt) = (OperationId::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001), 3);
    let mut to_service = headers.clone();
    tower_headers::tell_service(&mut to_service, id, attempt);
    assert_eq!(lines_of(&to_service), told(lines, &id.to_string(), "3"), "told the service");
}

fn answers(headers: &HeaderMap, lines: &Lines<'_>, wanted: &[HeaderName]) {
    let names: Vec<&str> = wanted.iter().map(HeaderName::as_str).collect();
    let policy = tower_headers::KeptHeaders::default().and(wanted.iter().cloned());
    assert_eq!(policy.is_ok(), names.iter().all(|name| may_be_kept(name)), "{names:?}");
    if let Ok(policy) = policy {
        let stored = policy.of(headers, false);
        let mut stored: Lines<'_> =
            stored.iter().map(|(name, value)| (name.as_str(), value.as_ref().into())).collect();
        stored.sort_by_key(|(name, _)| *name);
        assert!(stored.iter().all(|(name, _)| may_be_kept(name)), "{stored:?}");
        assert_eq!(stored, kept(lines, &names), "kept");
    }
    let mut to_client = headers.clone();
    tower_headers::drop_ours(&mut to_client);
    assert_eq!(lines_of(&to_client), without_ours(lines), "told the client");

    if let Some(resource) = tower_headers::resource(headers) {
        let declared =
            lines.iter().find(|(name, _)| *name == "semel-resource").map(|(_, value)| value.to_vec());
        assert!(!resource.kind.is_empty() && !resource.kind.contains('/') && !resource.id.is_empty());
        assert_eq!(declared, Some(format!("{}/{}", resource.kind, resource.id).into_bytes()));
    }
}

fn lines_of(headers: &HeaderMap) -> Lines<'_> {
    let mut lines: Lines<'_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes().into())).collect();
    lines.sort_by_key(|(name, _)| *name);
    lines
}
