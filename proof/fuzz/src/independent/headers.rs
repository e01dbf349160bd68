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

/// What of a client's request goes on, where one header tells tenants apart; `None`: it asks for its key, its tenant or the like to be
/// dropped, or has a key that only CGI would know for one, and is refused.
pub(crate) fn passed_on<'a>(lines: &Lines<'a>, tenant: &str) -> Option<Lines<'a>> {
    let named = words(lines, "connection");
    // What has characters in it that no name has, names nothing.
    let is_name = |word: &&String| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if named.iter().filter(is_name).any(|name| is_decisive(&variable(name), tenant)) {
        return None;
    }
    if lines.iter().any(|(name, _)| *name != "idempotency-key" && variable(name) == "idempotency-key") {
        return None;
    }
    // `close` is an option of the connection, and no name of a field.
    let is_dropped =
        |name: &str| is_hop_by_hop(name) || (name != "close" && named.iter().any(|one| one == name));
    Some(only(lines, |name| !is_dropped(name) && !is_claim(name)))
}

/// What of a client's trailers goes on.
pub(crate) fn trailing<'a>(lines: &Lines<'a>, tenant: &str) -> Lines<'a> {
    only(lines, |name| {
        !is_hop_by_hop(name)
            && !is_claim(name)
            && !names_a_method(name)
            && !is_decisive(&variable(name), tenant)
    })
}

/// A name as a server sees it that keeps fields in variables.
fn variable(name: &str) -> String {
    name.chars().map(|next| if next.is_ascii_alphanumeric() { next } else { '-' }).collect()
}

/// Names under which a client could pass for the gateway, also behind a server that keeps fields in variables.
fn is_claim(name: &str) -> bool {
    let seen_as = variable(name);
    seen_as.starts_with("semel-")
        || (seen_as != name && (is_hop_by_hop(&seen_as) || is_decisive(&seen_as, "idempotency-key")))
}

/// Names of what says which request it is, and whose.
fn is_decisive(name: &str, tenant: &str) -> bool {
    let always =
        "idempotency-key authorization x-api-key cookie host content-length content-type content-encoding";
    name == tenant || always.split(' ').any(|one| one == name) || is_identity(name)
}

/// Names by which proxies tell a service of a request's client, and of what it asked for.
pub(crate) fn is_identity(name: &str) -> bool {
    let addresses = "forwarded-for x-real-ip true-client-ip client-ip x-client-ip x-cluster-client-ip x-remote-ip x-remote-addr \
                     x-originating-ip x-proxyuser-ip cf-connecting-ip cf-connecting-ipv6 cf-pseudo-ipv4 fastly-client-ip \
                     fly-client-ip cloudfront-viewer-address x-azure-clientip x-azure-socketip x-appengine-user-ip \
                     x-envoy-external-address x-vercel-forwarded-for x-nf-client-connection-ip wl-proxy-client-ip";
    let others = "forwarded x-forwarded front-end-https x-scheme x-url-scheme x-arr-ssl x-override-url";
    let families = ["x-forwarded-", "x-original-", "x-rewrite-"];
    addresses.split_whitespace().chain(others.split_whitespace()).any(|one| one == name)
        || families.iter().any(|family| name.starts_with(family))
}

/// Names by which a service is told of another method.
pub(crate) fn names_a_method(name: &str) -> bool {
    ["x-http-method", "x-http-method-override", "x-method-override"].contains(&variable(name).as_str())
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
    name.starts_with("semel-")
        || ["idempotent-replayed", "idempotency-key-expires", "original-request-id"].contains(&name)
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
