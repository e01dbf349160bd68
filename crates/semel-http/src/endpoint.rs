//! Where requests go: scheme, host and port of a URL, and its path.

use http::request::Builder;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Request, Uri};
use std::fmt;

/// An `http` or `https` URL without credentials. Every request of a [`Client`](crate::Client) goes to its host.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    path: PathAndQuery,
}

/// Why a text is no [`Endpoint`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// It is no absolute URL.
    #[error("not a URL: write scheme, host and path, such as https://bank.example/status")]
    NotAUrl,
    /// The scheme is neither `http` nor `https`.
    #[error("the scheme must be http or https")]
    Scheme,
    /// There is a user name or a password in it.
    #[error("a URL with a user name or password: credentials belong in a header")]
    Credentials,
    /// The port is 0, or no number.
    #[error("the port must be a number from 1 to 65535")]
    Port,
}

impl Endpoint {
    /// Parses a URL.
    ///
    /// # Errors
    /// What is wrong with it; the URL itself is not repeated, since it may hold a password.
    pub fn parse(url: &str) -> Result<Self, InvalidEndpoint> {
        if url
            .split_once("://")
            .is_some_and(|(_, rest)| rest.split('/').next().is_some_and(|host| host.contains('@')))
        {
            return Err(InvalidEndpoint::Credentials);
        }
        let uri: Uri = url.parse().map_err(|_| InvalidEndpoint::NotAUrl)?;
        Self::new(&uri)
    }

    /// Takes a URL that was parsed already.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn new(uri: &Uri) -> Result<Self, InvalidEndpoint> {
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(InvalidEndpoint::NotAUrl);
        };
        if ![Scheme::HTTP, Scheme::HTTPS].contains(scheme) {
            return Err(InvalidEndpoint::Scheme);
        }
        if authority.as_str().contains('@') {
            return Err(InvalidEndpoint::Credentials);
        }
        if authority.host().trim_matches(['[', ']']).is_empty() {
            return Err(InvalidEndpoint::NotAUrl);
        }
        // `Uri` takes "host:" and "host:99999" for hosts without a port.
        let has_port = authority.as_str().len() > authority.host().len();
        if has_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(InvalidEndpoint::Port);
        }
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Ok(Self { scheme: scheme.clone(), authority: authority.clone(), path })
    }

    /// The host, without the brackets of an IPv6 address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.authority.host().trim_matches(['[', ']'])
    }

    /// The port, or the scheme's own.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Whether connections are over TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Host and port as the URL has them, for `Host` and for messages.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Path and query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.path.as_str()
    }

    /// The same host with another path. What is no path is refused when the request is built.
    #[must_use]
    pub fn at(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.authority)
    }

    /// A request to `path` at this host.
    pub fn request(&self, method: Method, path: &str) -> Builder {
        Request::builder().method(method).uri(self.at(path))
    }

    /// A `GET` of `path` at this host.
    pub fn get(&self, path: &str) -> Builder {
        self.request(Method::GET, path)
    }

    /// A `POST` to `path` at this host.
    pub fn post(&self, path: &str) -> Builder {
        self.request(Method::POST, path)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_host_a_port_and_a_path() {
        for (url, host, port, path) in [
            ("http://127.0.0.1:9000/x?y=1", "127.0.0.1", 9000, "/x?y=1"),
            ("https://bank.example", "bank.example", 443, "/"),
            ("http://[::1]/a", "::1", 80, "/a"),
            ("https://[::1]:8443", "::1", 8443, "/"),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!((endpoint.host(), endpoint.port(), endpoint.path()), (host, port, path), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        for (url, why) in [
            ("", InvalidEndpoint::NotAUrl),
            ("bank", InvalidEndpoint::NotAUrl),
            ("/status", InvalidEndpoint::NotAUrl),
            ("http://", InvalidEndpoint::NotAUrl),
            ("ftp://bank/", InvalidEndpoint::Scheme),
            ("https://me:word@bank/", InvalidEndpoint::Credentials),
            ("http://bank:/", InvalidEndpoint::Port),
            ("http://bank:0/", InvalidEndpoint::Port),
            ("http://bank:99999/", InvalidEndpoint::Port),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap_err(), why, "{url}");
        }
    }
}
