//! Which header fields pass from one side to the other, and which are kept for retries.
//!
//! Fields are lines of a lower-case name and a value, sorted by name; lines of one name stay in their order.

use semel::OperationId;

pub(crate) type Lines = Vec<(String, Vec<u8>)>;

/// Names that are about one connection, whoever sends them.
fn is_hop_by_hop(name: &str) -> bool {
    ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"].contains(&name)
        || name.starts_with("proxy-")
}

/// The comma-separated words of all lines of this name, in lower case.
pub(crate) fn words(lines: &Lines, name: &str) -> Vec<String> {
    let values = lines.iter().filter(|(own, _)| own == name);
    let words = values.flat_map(|(_, value)| value.split(|byte| *byte == b','));
    words
        .map(|word| {
            let text: String = word.iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect();
            text.trim_matches([' ', '\t']).to_owned()
        })
        .collect()
}

/// What of a client's request goes on; `None`: it asks for its key to be dropped, and is refused.
pub(crate) fn passed_on(lines: &Lines) -> Option<Lines> {
    let named = words(lines, "connection");
    if named.iter().any(|name| name == "idempotency-key") {
        return None;
    }
    // `close` is an option of the connection, and no name of a field.
    let dropped = |name: &String| is_hop_by_hop(name) || (name != "close" && named.contains(name));
    Some(lines.iter().filter(|(name, _)| !dropped(name) && !is_claim(name)).cloned().collect())
}

/// Names under which a client could pass for the gateway, also behind a server that takes an underscore for a hyphen.
fn is_claim(name: &str) -> bool {
    let seen_as = name.replace('_', "-");
    let disguised = seen_as != name;
    let guarded = ["idempotency-key", "forwarded", "content-length", "transfer-encoding", "host"];
    name.starts_with("semel-")
        || (disguised
            && (guarded.contains(&seen_as.as_str())
                || ["semel-", "x-forwarded-", "proxy-"].iter().any(|prefix| seen_as.starts_with(prefix))))
}

/// What may be asked of the service again of what was about the connection, over HTTP/1.1.
pub(crate) fn asked_again(lines: &Lines) -> Lines {
    let connection = words(lines, "connection");
    let mut asked = Lines::new();
    let mut options = Vec::new();
    if words(lines, "te").iter().any(|word| word == "trailers") && connection.iter().any(|word| word == "te")
    {
        asked.push(("te".into(), b"trailers".to_vec()));
        options.push("te");
    }
    asked.extend(lines.iter().filter(|(name, _)| name == "trailer").cloned());
    let protocols: Vec<_> = lines.iter().filter(|(name, _)| name == "upgrade").collect();
    let has_body = lines.iter().any(|(name, _)| name == "content-length" || name == "transfer-encoding");
    let hides = |word: &String| ["h2", "h3", "http", "tls"].iter().any(|prefix| word.starts_with(prefix));
    if let [(_, protocol)] = protocols[..]
        && !protocol.is_empty()
        && !has_body
        && connection.iter().any(|word| word == "upgrade")
        && !words(lines, "upgrade").iter().any(hides)
    {
        asked.push(("upgrade".into(), protocol.clone()));
        options.push("upgrade");
    }
    if !options.is_empty() {
        asked.push(("connection".into(), options.join(", ").into_bytes()));
    }
    asked.sort_by(|one, other| one.0.cmp(&other.0));
    asked
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
pub(crate) fn kept(lines: &Lines, more: &[String]) -> Lines {
    let always = ["content-type", "content-encoding", "content-language", "location", "etag", "link"];
    let is_kept = |name: &String| always.contains(&name.as_str()) || more.contains(name);
    lines.iter().filter(|(name, _)| is_kept(name)).cloned().collect()
}

/// What of an answer reaches the client, apart from what Semel adds.
pub(crate) fn without_ours(lines: &Lines) -> Lines {
    lines.iter().filter(|(name, _)| !is_semels_own(name)).cloned().collect()
}

/// What the service gets of a request that is carried out.
pub(crate) fn told(lines: &Lines, operation_id: OperationId, attempt: u32) -> Lines {
    let mut told = without_ours(lines);
    told.retain(|(name, _)| name != "accept-encoding");
    told.push(("semel-operation-id".into(), operation_id.to_string().into_bytes()));
    told.push(("semel-attempt".into(), attempt.to_string().into_bytes()));
    told.push(("accept-encoding".into(), b"identity".to_vec()));
    told.sort_by(|one, other| one.0.cmp(&other.0));
    told
}
