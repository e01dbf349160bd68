//! Whose request it was: `Forwarded` (RFC 7239), the older `X-Forwarded-*`, and what else proxies say of it.

use super::hop_by_hop::remove_all;
use super::names::is_identity;
use http::header::{FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue};
use semel::headers::{X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// What is said of a client: worked out once for a connection, as long as it asks for the same host.
#[derive(Default)]
pub(crate) struct ForwardedHeaders {
    /// Whether the client speaks TLS.
    encrypted: bool,
    last: Mutex<Option<Words>>,
}

#[derive(Clone)]
struct Words {
    peer: Option<IpAddr>,
    host: Option<HeaderValue>,
    address: Option<HeaderValue>,
    element: HeaderValue,
}

impl ForwardedHeaders {
    /// Of a client that speaks TLS, or does not.
    pub(crate) fn over(encrypted: bool) -> Self {
        Self { encrypted, last: Mutex::default() }
    }

    /// Tells the service whose request it is. What a trusted peer (a load balancer) said of those before it is kept, and ours added;
    /// what others claim is dropped.
    pub(crate) fn announce(&self, headers: &mut HeaderMap, peer: Option<IpAddr>, is_trusted: bool) {
        let words = self.words(peer, headers.get(HOST));
        if !is_trusted {
            remove_all(headers, |name| is_identity(name.as_str()));
        }
        add(headers, FORWARDED, words.element);
        if let Some(address) = words.address {
            add(headers, X_FORWARDED_FOR, address);
        }
        headers.entry(X_FORWARDED_PROTO).or_insert(HeaderValue::from_static(self.scheme()));
        if let Some(host) = words.host {
            headers.entry(X_FORWARDED_HOST).or_insert(host);
        }
    }

    fn words(&self, peer: Option<IpAddr>, host: Option<&HeaderValue>) -> Words {
        // Only whole values are set under the lock: a poisoned one is as good as any.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(words) if words.peer == peer && words.host.as_ref() == host => words.clone(),
            _ => last.insert(Words::of(peer, host, self.scheme())).clone(),
        }
    }

    /// How clients speak with us.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.encrypted { "https" } else { "http" }
    }
}

impl Words {
    fn of(peer: Option<IpAddr>, host: Option<&HeaderValue>, scheme: &str) -> Self {
        let value = |text: String| HeaderValue::try_from(text).ok();
        Self {
            peer,
            host: host.cloned(),
            address: peer.and_then(|peer| value(peer.to_canonical().to_string())),
            // Addresses and visible characters are a value.
            element: value(element(peer, host, scheme)).unwrap_or(HeaderValue::from_static("for=unknown")),
        }
    }
}

/// Adds to a list, all of it in one line: many services look at the first line alone.
fn add(headers: &mut HeaderMap, name: HeaderName, element: HeaderValue) {
    let mut before = headers.get_all(&name).iter().map(HeaderValue::as_bytes).peekable();
    let list = if before.peek().is_none() {
        Ok(element)
    } else {
        let all: Vec<&[u8]> = before.chain([element.as_bytes()]).collect();
        HeaderValue::from_bytes(&all.join(&b", "[..]))
    };
    // Values joined with values are a value.
    if let Ok(list) = list {
        headers.insert(name, list);
    }
}

/// `for=192.0.2.1;host="a.example:8080";proto=http`
fn element(peer: Option<IpAddr>, host: Option<&HeaderValue>, scheme: &str) -> String {
    let mut element = String::with_capacity(64);
    // Writing to a string does not fail.
    let _ = match peer.map(|peer| peer.to_canonical()) {
        Some(IpAddr::V4(address)) => write!(element, "for={address}"),
        Some(IpAddr::V6(address)) => write!(element, "for=\"[{address}]\""),
        None => write!(element, "for=unknown"),
    };
    if let Some(host) = host.and_then(|host| host.to_str().ok()) {
        element.push_str(";host=");
        if !host.is_empty() && host.bytes().all(is_token) {
            element.push_str(host);
        } else {
            element.push('"');
            for character in host.chars() {
                if matches!(character, '"' | '\\') {
                    element.push('\\');
                }
                element.push(character);
            }
            element.push('"');
        }
    }
    element.push_str(";proto=");
    element.push_str(scheme);
    element
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(
        lines: &[(&'static str, &'static str)],
        peer: &str,
        is_trusted: bool,
    ) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for &(name, value) in lines {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let forwarded = ForwardedHeaders::default();
        // What was worked out for another is not said of this one.
        forwarded.announce(&mut HeaderMap::new(), "198.51.100.1".parse().ok(), false);
        forwarded.announce(&mut headers.clone(), peer.parse().ok(), is_trusted);
        forwarded.announce(&mut headers, peer.parse().ok(), is_trusted);
        headers.remove(HOST);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        let mut lines: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        lines.sort();
        lines
    }

    fn expect(lines: &[(&str, &str)]) -> Vec<(String, String)> {
        lines.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn the_peer_and_the_host_are_told() {
        assert_eq!(
            announced(&[("host", "a.example")], "192.0.2.1", false),
            expect(&[
                ("forwarded", "for=192.0.2.1;host=a.example;proto=http"),
                ("x-forwarded-for", "192.0.2.1"),
                ("x-forwarded-host", "a.example"),
                ("x-forwarded-proto", "http"),
            ])
        );
    }

    #[test]
    fn that_a_client_speaks_tls_is_told() {
        let mut headers = HeaderMap::new();
        ForwardedHeaders::over(true).announce(&mut headers, "192.0.2.1".parse().ok(), false);
        assert_eq!(headers[FORWARDED], "for=192.0.2.1;proto=https");
        assert_eq!(headers[X_FORWARDED_PROTO], "https");
    }

    #[test]
    fn addresses_and_ports_are_quoted_where_they_must_be() {
        let lines = announced(&[("host", "[::1]:8080")], "2001:db8::1", false);
        assert_eq!(lines[0].1, r#"for="[2001:db8::1]";host="[::1]:8080";proto=http"#);
        assert_eq!(lines[1].1, "2001:db8::1");
        let lines = announced(&[("host", r#"a"b\c"#)], "::ffff:192.0.2.1", false);
        assert_eq!(lines[0].1, r#"for=192.0.2.1;host="a\"b\\c";proto=http"#);
        let lines = announced(&[], "nobody", false);
        assert_eq!(lines, expect(&[("forwarded", "for=unknown;proto=http"), ("x-forwarded-proto", "http")]));
    }

    #[test]
    fn only_a_trusted_peer_is_believed() {
        let claims = [
            ("host", "a"),
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-for", "198.51.100.7"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "shop.example"),
            ("forwarded", "for=203.0.113.9"),
            ("x-real-ip", "203.0.113.9"),
            ("x-forwarded-prefix", "/admin"),
        ];
        assert_eq!(
            announced(&claims, "127.0.0.1", true),
            expect(&[
                ("forwarded", "for=203.0.113.9, for=127.0.0.1;host=a;proto=http"),
                ("x-forwarded-for", "203.0.113.9, 198.51.100.7, 127.0.0.1"),
                ("x-forwarded-host", "shop.example"),
                ("x-forwarded-prefix", "/admin"),
                ("x-forwarded-proto", "https"),
                ("x-real-ip", "203.0.113.9"),
            ])
        );
        assert_eq!(
            announced(&claims, "192.0.2.1", false),
            expect(&[
                ("forwarded", "for=192.0.2.1;host=a;proto=http"),
                ("x-forwarded-for", "192.0.2.1"),
                ("x-forwarded-host", "a"),
                ("x-forwarded-proto", "http"),
            ])
        );
    }
}
