//! Which header fields pass from one side to the other, and which are kept for retries.
//!
//! Fields are lines of a lower-case name and a value, sorted by name; lines of one name stay in their order.

use std::borrow::Cow;

pub(crate) type Lines<'a> = Vec<(&'a str, Cow<'a, [u8]>)>;

/// Names that are about one connection, whoever sends them.
fn is_hop_by_hop(name: &str) -> bool {
    ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"].contains(&name)
        || name.starts_with("proxy-")
}

/// The comma-separated words of all lines of this name, in lower case.
fn words(lines: &Lines<'_>, name: &str) -> Vec<String> {
    let values = lines.iter().filter(|(own, _)| *own == name);
    let words = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
    words
        .map(|word| {
            let text: String = word.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect();
            text.trim_matches([' ', '\t']).to_owned()
        })
        .collect()
}

fn only<'a>(lines: &Lines<'a>, which: impl Fn(&str) -> bool) -> Lines<'a> {
    lines.iter().filter(|(name, _)| which(name)).cloned().collect()
}

fn sorted(mut lines: Lines<'_>) -> Lines<'_> {
    lines.sort_by_key(|(name, _)| *name);
    lines
}

/// What of a client's request goes on; `None`: it asks for its key to be dropped, and is refused.
pub(crate) fn passed_on<'a>(lines: &Lines<'a>) -> Option<Lines<'a>> {
    let named = words(lines, "connection");
    let is_named = |name: &str| named.iter().any(|one| one == name);
    if is_named("idempotency-key") {
        return None;
    }
    // `close` is an option of the connection, and no name of a field.
    let is_dropped = |name: &str| is_hop_by_hop(name) || (name != "close" && is_named(name));
    Some(only(lines, |name| !is_dropped(name) && !is_claim(name)))
}

/// Names under which a client could pass for the gateway, also behind a server that takes an underscore for a hyphen.
fn is_claim(name: &str) -> bool {
    if name.starts_with("semel-") || !name.contains('_') {
        return name.starts_with("semel-");
    }
    let seen_as = name.replace('_', "-");
    ["idempotency-key", "forwarded", "content-length", "transfer-encoding", "host"]
        .contains(&seen_as.as_str())
        || ["semel-", "x-forwarded-", "proxy-"].iter().any(|prefix| seen_as.starts_with(prefix))
}

/// What may be asked of the service again of what was about the connection, over HTTP/1.1.
pub(crate) fn asked_again<'a>(lines: &Lines<'a>) -> Lines<'a> {
    let connection = words(lines, "connection");
    let is_asked = |option: &str| connection.iter().any(|word| word == option);
    let mut asked = only(lines, |name| name == "trailer");
    let mut options = Vec::new();
    if is_asked("te") && words(lines, "te").iter().any(|word| word == "trailers") {
        asked.push(("te", Cow::Borrowed(b"trailers")));
        options.push("te");
    }
    let protocols = only(lines, |name| name == "upgrade");
    let has_body = lines.iter().any(|(name, _)| ["content-length", "transfer-encoding"].contains(name));
    let hides = |word: &String| ["h2", "h3", "http", "tls"].iter().any(|prefix| word.starts_with(prefix));
    if let [(_, protocol)] = &protocols[..]
        && !protocol.is_empty()
        && !has_body
        && is_asked("upgrade")
        && !words(lines, "upgrade").iter().any(hides)
    {
        asked.push(("upgrade", protocol.clone()));
        options.push("upgrade");
    }
    if !options.is_empty() {
        asked.push(("connection", options.join(", ").into_bytes().into()));
    }
    sorted(asked)
}

/// Whether a policy may ask for a field to be kept.
pub(crate) fn may_be_kept(name: &str) -> bool {
    let of_one_caller = [
        "set-cookie",
        "set-cookie2",
        "cookie",
        "authorization",
        "proxy-authorization",
        "www-authenticate",
        "proxy-authenticate",
        "authentication-info",
        "proxy-authentication-info",
    ];
    let of_one_connection =
        ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"];
    !of_one_caller.contains(&name)
        && !of_one_connection.contains(&name)
        && name != "content-length"
        && !is_semels_own(name)
}

/// What only Semel says, to a service or to a client.
fn is_semels_own(name: &str) -> bool {
    name.starts_with("semel-") || name == "idempotent-replayed"
}

/// What is kept of an answer.
pub(crate) fn kept<'a>(lines: &Lines<'a>, more: &[&str]) -> Lines<'a> {
    let always = ["content-type", "content-encoding", "content-language", "location", "etag", "link"];
    only(lines, |name| always.contains(&name) || more.contains(&name))
}

/// What of an answer reaches the client, apart from what Semel adds.
pub(crate) fn without_ours<'a>(lines: &Lines<'a>) -> Lines<'a> {
    only(lines, |name| !is_semels_own(name))
}

/// What the service gets of a request that is carried out.
pub(crate) fn told<'a>(lines: &Lines<'a>, operation_id: &'a str, attempt: &'a str) -> Lines<'a> {
    let mut told = only(lines, |name| !is_semels_own(name) && name != "accept-encoding");
    told.push(("semel-operation-id", operation_id.as_bytes().into()));
    told.push(("semel-attempt", attempt.as_bytes().into()));
    told.push(("accept-encoding", b"identity"[..].into()));
    sorted(told)
}
