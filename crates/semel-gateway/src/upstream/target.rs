//! Where the service is.

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
use rustls::pki_types::ServerName;

/// The service's address, taken apart once.
pub(super) struct Target {
    /// Whether it speaks TLS, and as whom.
    pub(super) tls: Option<ServerName<'static>>,
    pub(super) host: String,
    pub(super) port: u16,
    /// For requests that name no host themselves.
    pub(super) authority: HeaderValue,
    /// Put before every path; empty, or begins with a slash and does not end in one.
    base: String,
}

/// An address that no service can be reached at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUpstream {
    /// It does not say `http://` or `https://`.
    #[error("`{0}` does not begin with http:// or https://; write it like http://127.0.0.1:9000")]
    NotHttp(Uri),
    /// It says `https://`, and it was not said whom to believe.
    #[error("`{0}` is an https URL, and no certificate authorities are configured")]
    Tls(Uri),
    /// It has parts that are not an address.
    #[error("`{0}` has a query or credentials; only scheme, host, port and a base path are allowed")]
    MoreThanAnAddress(Uri),
}

impl Target {
    pub(super) fn new(url: &Uri) -> Result<Self, InvalidUpstream> {
        let encrypted = url.scheme() == Some(&Scheme::HTTPS);
        let authority = match url.authority() {
            Some(authority)
                if (encrypted || url.scheme() == Some(&Scheme::HTTP)) && !authority.host().is_empty() =>
            {
                authority
            }
            _ => return Err(InvalidUpstream::NotHttp(url.clone())),
        };
        let Ok(value) = HeaderValue::from_str(authority.as_str()) else {
            return Err(InvalidUpstream::NotHttp(url.clone()));
        };
        if url.query().is_some() || authority.as_str().contains('@') {
            return Err(InvalidUpstream::MoreThanAnAddress(url.clone()));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let tls = match encrypted {
            true => {
                Some(ServerName::try_from(host.clone()).map_err(|_| InvalidUpstream::NotHttp(url.clone()))?)
            }
            false => None,
        };
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 }),
            tls,
            authority: value,
            base: url.path().trim_end_matches('/').to_owned(),
        })
    }

    /// What to ask the service for: path and query as they came, byte for byte, after the base.
    pub(super) fn request_target(&self, uri: &Uri) -> Uri {
        let asked = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        if self.base.is_empty() || asked.as_str() == "*" {
            return Uri::from(asked);
        }
        // A base and a path make a path.
        PathAndQuery::try_from(format!("{}{asked}", self.base)).map_or_else(|_| Uri::from(asked), Uri::from)
    }

    /// The same as HTTP/2 asks for it: with the scheme and the host, which is in no field there.
    pub(super) fn with_host(&self, target: Uri, host: Option<HeaderValue>) -> Uri {
        let mut parts = target.into_parts();
        let path = parts.path_and_query.clone();
        let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        parts.authority = authority.or_else(|| Authority::try_from(self.authority.as_bytes()).ok());
        parts.scheme = Some(if self.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP });
        // A scheme, a host and a path are an address.
        Uri::from_parts(parts).unwrap_or_else(|_| path.map(Uri::from).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, InvalidUpstream> {
        Target::new(&url.parse().unwrap())
    }

    #[test]
    fn an_address_is_taken_apart() {
        let target = target("http://[::1]:9000/api/").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 9000));
        assert_eq!(target.authority, "[::1]:9000");
        let asked = |uri: &'static str| target.request_target(&Uri::from_static(uri)).to_string();
        assert_eq!(asked("/x/%2F//../y?a=b&&c=%20"), "/api/x/%2F//../y?a=b&&c=%20");
        assert_eq!(asked("http://other.example/x"), "/api/x");
        assert_eq!(asked("*"), "*");
    }

    #[test]
    fn tls_has_a_port_and_a_name_of_its_own() {
        let plain = target("http://a").unwrap();
        assert_eq!((plain.port, plain.tls.is_some()), (80, false));
        let named = target("https://service.internal").unwrap();
        assert_eq!((named.port, named.tls.unwrap().to_str()), (443, "service.internal".into()));
        let by_address = target("https://[::1]:9443").unwrap();
        assert_eq!((by_address.port, by_address.tls.unwrap().to_str()), (9443, "::1".into()));
    }

    #[test]
    fn http_2_asks_with_scheme_and_host() {
        let asked = |url: &str, host: Option<&'static str>| {
            let host = host.map(HeaderValue::from_static);
            target(url).unwrap().with_host(Uri::from_static("/a?b"), host).to_string()
        };
        assert_eq!(asked("http://service:1", Some("shop.example")), "http://shop.example/a?b");
        assert_eq!(asked("https://service:1", None), "https://service:1/a?b");
        assert_eq!(asked("https://service:1", Some("no host")), "https://service:1/a?b");
    }

    #[test]
    fn without_a_base_the_target_is_the_one_that_came() {
        let target = target("http://service").unwrap();
        assert_eq!(target.port, 80);
        for uri in ["/", "//a//b", "/a?", "/?%zz", "/a/./b/../c;d=e", "/%E2%82%AC?x=[1]"] {
            assert_eq!(target.request_target(&Uri::from_static(uri)).to_string(), uri);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(matches!(target("/path"), Err(InvalidUpstream::NotHttp(_))));
        assert!(matches!(target("127.0.0.1:9000"), Err(InvalidUpstream::NotHttp(_))));
        assert!(matches!(target("ftp://a"), Err(InvalidUpstream::NotHttp(_))));
        assert!(matches!(target("http://a/?b=c"), Err(InvalidUpstream::MoreThanAnAddress(_))));
        assert!(matches!(target("http://u:p@a/"), Err(InvalidUpstream::MoreThanAnAddress(_))));
    }
}
