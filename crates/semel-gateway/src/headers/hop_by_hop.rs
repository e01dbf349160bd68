//! Which header fields go from one side to the other.

use super::names::{Decisive, is_hop_by_hop, is_method_override, is_mistakable};
use http::Version;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use semel::headers::is_own;

/// Drops what is about one connection alone: the fields that `Connection` names, and those that are always so. What of them is asked
/// of the service again, [`ConnectionOptions`] knows.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let mut gone: Vec<HeaderName> = Vec::new();
    for value in headers.get_all(CONNECTION) {
        for option in value.as_bytes().split(|&byte| byte == b',') {
            // What is no name names no field.
            let Ok(name) = HeaderName::from_bytes(option.trim_ascii()) else { continue };
            if name.as_str() != "close" && headers.contains_key(&name) {
                gone.push(name);
            }
        }
    }
    gone.extend(headers.keys().filter(|name| is_hop_by_hop(name.as_str())).cloned());
    for name in gone {
        headers.remove(name);
    }
}

/// What a client asks its connection for, and an unprotected request may ask of the service too.
#[derive(Clone, Default)]
pub(crate) struct ConnectionOptions {
    /// It takes trailers.
    trailers: bool,
    /// The trailers that it will send.
    announced: Vec<HeaderValue>,
    /// The protocols that it would rather speak.
    pub(crate) upgrade: Option<HeaderValue>,
}

impl ConnectionOptions {
    /// To be read before it is dropped.
    pub(crate) fn of(version: Version, headers: &HeaderMap) -> Self {
        let says = |name, word: &'static str| {
            has_token(headers, name, |token| token.eq_ignore_ascii_case(word.as_bytes()))
        };
        // RFC 9110, section 10.1.4: in HTTP/1.1 it is of no use unless `Connection` names it.
        let trailers = says(&TE, "trailers") && (version == Version::HTTP_2 || says(&CONNECTION, "te"));
        let announced = headers.get_all(TRAILER).iter().cloned().collect();
        Self { trailers, announced, upgrade: upgrade(version, headers) }
    }

    /// Asks the service for it.
    pub(crate) fn ask(&self, headers: &mut HeaderMap, version: Version) {
        let mut connection = Vec::new();
        if self.trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
            connection.push("te");
        }
        announce(headers, &self.announced);
        if let (Some(upgrade), Version::HTTP_11) = (&self.upgrade, version) {
            headers.insert(UPGRADE, upgrade.clone());
            connection.push("upgrade");
        }
        if let (false, Version::HTTP_11, Ok(options)) =
            (connection.is_empty(), version, HeaderValue::try_from(connection.join(", ")))
        {
            headers.insert(CONNECTION, options);
        }
    }
}

/// Says which trailers will come.
pub(crate) fn announce(headers: &mut HeaderMap, announced: &[HeaderValue]) {
    for value in announced {
        headers.append(TRAILER, value.clone());
    }
}

/// What a client would rather speak than HTTP/1.1, if it may. Another HTTP it may not: in it requests would pass that nobody here looks
/// at. Nor TLS, which would hide them.
fn upgrade(version: Version, headers: &HeaderMap) -> Option<HeaderValue> {
    let is_http = |token: &[u8]| {
        let token = token.to_ascii_lowercase();
        ["h2", "h3", "http", "tls"].iter().any(|name| token.starts_with(name.as_bytes()))
    };
    let mut protocols = headers.get_all(UPGRADE).iter();
    let protocol = protocols.next().filter(|_| protocols.next().is_none() && version == Version::HTTP_11)?;
    let is_asked = has_token(headers, &CONNECTION, |token| token.eq_ignore_ascii_case(b"upgrade"));
    let has_body = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    let is_http = has_token(headers, &UPGRADE, is_http);
    (is_asked && !has_body && !is_http && !protocol.is_empty()).then(|| protocol.clone())
}

fn has_token(headers: &HeaderMap, name: &HeaderName, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let tokens = headers.get_all(name).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    tokens.map(<[u8]>::trim_ascii).any(is_it)
}

/// Drops what a service says to us alone.
pub(crate) fn drop_ours(headers: &mut HeaderMap) {
    remove_all(headers, |name| is_own(name.as_str()));
}

/// Drops what a client may not say: Semel's own fields, and fields that a service could take for them or for others of ours. Behind
/// CGI and its heirs, `Semel_Attempt` and `Semel-Attempt` are one variable.
pub(crate) fn drop_claims(headers: &mut HeaderMap) {
    remove_all(headers, |name| is_own(name.as_str()) || is_mistakable(name.as_str()));
}

/// Drops of a client's trailers what it could not have said in its headers either, and what counts in a head alone: a service may take
/// the ones for the others.
pub(crate) fn clean_trailers(trailers: &mut HeaderMap, decisive: &Decisive) {
    remove_all(trailers, |name| {
        let name = name.as_str();
        is_own(name)
            || is_mistakable(name)
            || is_hop_by_hop(name)
            || is_method_override(name)
            || decisive.contains(name)
    });
}

/// Drops of a service's trailers what is for us alone.
pub(crate) fn clean_answered_trailers(trailers: &mut HeaderMap) {
    remove_all(trailers, |name| is_own(name.as_str()) || is_hop_by_hop(name.as_str()));
}

/// Removes all fields of these names.
pub(crate) fn remove_all(headers: &mut HeaderMap, which: impl Fn(&HeaderName) -> bool) {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| which(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        drop_hop_by_hop(&mut headers);
        assert_eq!(names(&headers), ["content-length", "x-stays"]);
    }

    fn asks(lines: &[(&'static str, &'static str)], version: Version) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        ConnectionOptions::of(version, &map(lines)).ask(&mut headers, Version::HTTP_11);
        let mut lines: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        lines.sort();
        lines
    }

    #[test]
    fn what_may_be_asked_of_the_service_is_asked_again() {
        let lines = [
            ("Connection", "Upgrade, TE"),
            ("Upgrade", "websocket"),
            ("TE", "gzip;q=1, trailers"),
            ("Trailer", "x-sum"),
        ];
        let expected = [
            ("connection", "te, upgrade"),
            ("te", "trailers"),
            ("trailer", "x-sum"),
            ("upgrade", "websocket"),
        ];
        assert_eq!(
            asks(&lines, Version::HTTP_11),
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(asks(&[("Upgrade", "websocket")], Version::HTTP_11).is_empty(), "Connection does not say so");
        assert!(asks(&lines[..2], Version::HTTP_10).is_empty());
        let with_body = [lines[0], lines[1], ("Content-Length", "5")];
        assert!(asks(&with_body, Version::HTTP_11).is_empty());
    }

    #[test]
    fn nobody_is_let_past_by_another_http() {
        for protocol in ["h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.2, HTTP/1.1", "h2", ""] {
            let lines = [("Connection", "upgrade"), ("Upgrade", protocol)];
            assert!(asks(&lines, Version::HTTP_11).is_empty(), "{protocol}");
        }
    }

    #[test]
    fn trailers_say_nothing_that_counts_in_a_head() {
        let mut trailers = map(&[
            ("X-Account", "x"),
            ("x_account", "x"),
            ("Authorization", "x"),
            ("X-Real-IP", "x"),
            ("X-HTTP-Method-Override", "x"),
            ("Idempotency-Key", "x"),
            ("Idempotency_Key", "x"),
            ("Semel-Attempt", "x"),
            ("X-Sum", "x"),
        ]);
        clean_trailers(&mut trailers, &Decisive::with([&HeaderName::from_static("x-account")]));
        assert_eq!(names(&trailers), ["x-sum"]);
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
