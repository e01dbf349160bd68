//! Which header fields go from one side to the other.

use http::header::{CONNECTION, HeaderMap, HeaderName, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};

const KEEP_ALIVE: &str = "keep-alive";
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The client asks to have its key dropped on the way, which would make its request another one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyIsHopByHop;

/// Drops what is about one connection alone: the fields that `Connection` names, and those that are always so. Trailers are not
/// passed on, and so neither is their announcement.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) -> Result<(), KeyIsHopByHop> {
    let mut gone: Vec<HeaderName> = Vec::new();
    for value in headers.get_all(CONNECTION) {
        for option in value.as_bytes().split(|&byte| byte == b',') {
            // What is no name names no field.
            let Ok(name) = HeaderName::from_bytes(option.trim_ascii()) else { continue };
            if name.as_str() == IDEMPOTENCY_KEY {
                return Err(KeyIsHopByHop);
            }
            if name.as_str() != "close" && headers.contains_key(&name) {
                gone.push(name);
            }
        }
    }
    gone.extend(headers.keys().filter(|name| is_hop_by_hop(name)).cloned());
    for name in gone {
        headers.remove(name);
    }
    Ok(())
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(*name, CONNECTION | TE | TRAILER | TRANSFER_ENCODING | UPGRADE)
        || name.as_str() == KEEP_ALIVE
        || name.as_str().starts_with("proxy-")
}

/// Drops what a service says to us alone.
pub(crate) fn drop_ours(headers: &mut HeaderMap) {
    remove_all(headers, is_ours);
}

/// Drops what a client may not say: Semel's own fields, and fields that a service could take for them or for others of ours. Behind
/// CGI and its heirs, `Semel_Attempt` and `Semel-Attempt` are one variable.
pub(crate) fn drop_claims(headers: &mut HeaderMap) {
    remove_all(headers, |name| is_ours(name) || looks_like_ours(name));
}

fn is_ours(name: &HeaderName) -> bool {
    name.as_str().starts_with("semel-")
}

fn looks_like_ours(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.contains('_') && {
        let seen_as = name.replace('_', "-");
        ["semel-", "x-forwarded-", "proxy-"].iter().any(|prefix| seen_as.starts_with(prefix))
            || ["idempotency-key", "forwarded", "content-length", "transfer-encoding", "host"]
                .contains(&seen_as.as_str())
    }
}

fn remove_all(headers: &mut HeaderMap, which: impl Fn(&HeaderName) -> bool) {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| which(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let lines = lines.iter().map(|&(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::new();
        lines.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_is_about_the_connection_stays_on_it() {
        let mut headers = map(&[
            ("Connection", "close, X-Mine"),
            ("Connection", "Keep-Alive , ,x-other,(none)"),
            ("X-Mine", "1"),
            ("X-Other", "1"),
            ("X-Stays", "1"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Authorization", "x"),
            ("Proxy-Connection", "x"),
            ("TE", "trailers"),
            ("Trailer", "x"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "h2c"),
            ("Content-Length", "5"),
        ]);
        drop_hop_by_hop(&mut headers).unwrap();
        assert_eq!(names(&headers), ["content-length", "x-stays"]);
    }

    #[test]
    fn a_key_cannot_be_dropped_on_the_way() {
        let mut headers = map(&[("Connection", "Idempotency-Key"), ("Idempotency-Key", "k")]);
        assert_eq!(drop_hop_by_hop(&mut headers), Err(KeyIsHopByHop));
    }

    #[test]
    fn our_own_names_and_what_looks_like_them_are_dropped() {
        let mut headers = map(&[
            ("Semel-Operation-Id", "x"),
            ("SEMEL-Anything", "x"),
            ("Semel_Attempt", "x"),
            ("X_Forwarded-For", "x"),
            ("Idempotency_Key", "x"),
            ("Content_Length", "5"),
            ("X_Stays", "x"),
            ("Semelparous", "x"),
        ]);
        drop_claims(&mut headers);
        assert_eq!(names(&headers), ["semelparous", "x_stays"]);
    }
}
