//! Where the service is.

use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

/// The service's address, taken apart once.
pub(super) struct Target {
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
    /// It does not say `http://`.
    #[error("`{0}` does not begin with http://; write it like http://127.0.0.1:9000")]
    NotHttp(Uri),
    /// It says `https://`.
    #[error(
        "`{0}` asks for TLS, which the gateway does not speak to the service; put both on one machine or network, and use http://"
    )]
    Tls(Uri),
    /// It has parts that are not an address.
    #[error("`{0}` has a query or credentials in it; only host, port and a base path make sense here")]
    MoreThanAnAddress(Uri),
}

impl Target {
    pub(super) fn new(url: &Uri) -> Result<Self, InvalidUpstream> {
        if url.scheme() == Some(&Scheme::HTTPS) {
            return Err(InvalidUpstream::Tls(url.clone()));
        }
        let authority = match url.authority() {
            Some(authority) if url.scheme() == Some(&Scheme::HTTP) && !authority.host().is_empty() => {
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
        Ok(Self {
            host: authority.host().trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: authority.port_u16().unwrap_or(80),
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
    fn without_a_base_the_target_is_the_one_that_came() {
        let target = target("http://service").unwrap();
        assert_eq!(target.port, 80);
        for uri in ["/", "//a//b", "/a?", "/?%zz", "/a/./b/../c;d=e", "/%E2%82%AC?x=[1]"] {
            assert_eq!(target.request_target(&Uri::from_static(uri)).to_string(), uri);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        assert!(matches!(target("https://a"), Err(InvalidUpstream::Tls(_))));
        assert!(matches!(target("/path"), Err(InvalidUpstream::NotHttp(_))));
        assert!(matches!(target("127.0.0.1:9000"), Err(InvalidUpstream::NotHttp(_))));
        assert!(matches!(target("ftp://a"), Err(InvalidUpstream::NotHttp(_))));
        assert!(matches!(target("http://a/?b=c"), Err(InvalidUpstream::MoreThanAnAddress(_))));
        assert!(matches!(target("http://u:p@a/"), Err(InvalidUpstream::MoreThanAnAddress(_))));
    }
}
