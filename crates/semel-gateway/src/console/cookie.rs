//! The cookie of a session.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use std::net::IpAddr;

/// Over TLS: browsers keep it for this host alone, and send it over TLS alone.
const OVER_TLS: &str = "__Host-semel";

/// On plain loopback, where browsers would refuse the other name.
const ON_LOOPBACK: &str = "semel-console";

/// How the browser reaches the console.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transport {
    /// Over TLS, ours or a proxy's.
    Tls,
    /// Without TLS, from this machine to this machine.
    Loopback,
    /// Without TLS over a network: a token would be read on the way.
    Plain,
}

impl Transport {
    /// A proxy in front says whether it was reached over TLS. Whoever claims that without being one gets a cookie that their browser
    /// refuses.
    pub(super) fn of(has_tls: bool, peer: Option<IpAddr>, headers: &HeaderMap) -> Self {
        let forwarded = headers.get("x-forwarded-proto").map(HeaderValue::as_bytes);
        match forwarded {
            Some(b"https") => Self::Tls,
            _ if has_tls => Self::Tls,
            None if peer.is_some_and(|peer| peer.to_canonical().is_loopback()) => Self::Loopback,
            _ => Self::Plain,
        }
    }

    fn name(self) -> &'static str {
        if self == Self::Tls { OVER_TLS } else { ON_LOOPBACK }
    }

    /// The value of the cookie, if there is exactly one.
    pub(super) fn cookie(self, headers: &HeaderMap) -> Option<&str> {
        let name = self.name();
        let pairs = headers.get_all(COOKIE).iter().filter_map(|field| field.to_str().ok());
        let mut values =
            pairs.flat_map(|field| field.split(';')).filter_map(|pair| match pair.trim().split_once('=') {
                Some((pair, value)) if pair == name => Some(value),
                _ => None,
            });
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Sets it, for as long as the browser runs.
    pub(super) fn set(self, value: &str) -> Option<HeaderValue> {
        let secure = if self == Self::Tls { "; Secure" } else { "" };
        HeaderValue::try_from(format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", self.name()))
            .ok()
    }

    /// Removes it.
    pub(super) fn clear(self) -> Option<HeaderValue> {
        let secure = if self == Self::Tls { "; Secure" } else { "" };
        HeaderValue::try_from(format!(
            "{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0{secure}",
            self.name()
        ))
        .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_the_way_that_the_browser_came() {
        let headers = |fields: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in fields {
                headers.append(*name, HeaderValue::from_static(value));
            }
            headers
        };
        let here: Option<IpAddr> = "127.0.0.1".parse().ok();
        let there: Option<IpAddr> = "192.0.2.1".parse().ok();
        let https = headers(&[("x-forwarded-proto", "https")]);
        let http = headers(&[("x-forwarded-proto", "http")]);
        let none = HeaderMap::new();
        for (tls, peer, headers, transport) in [
            (true, there, &none, Transport::Tls),
            (false, here, &none, Transport::Loopback),
            (false, there, &none, Transport::Plain),
            (false, here, &https, Transport::Tls),
            (false, here, &http, Transport::Plain),
        ] {
            assert_eq!(Transport::of(tls, peer, headers), transport);
        }
        let two = headers(&[("cookie", "a=1; __Host-semel=x"), ("cookie", "semel-console=y")]);
        assert_eq!((Transport::Tls.cookie(&two), Transport::Loopback.cookie(&two)), (Some("x"), Some("y")));
        let twice = headers(&[("cookie", "__Host-semel=x; __Host-semel=y")]);
        assert_eq!(Transport::Tls.cookie(&twice), None);
    }
}
