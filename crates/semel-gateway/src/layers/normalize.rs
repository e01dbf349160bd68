//! Brings every request into one form: the host in `Host`, path and query in the target, HTTP/2's spellings as in HTTP/1.1.
//!
//! What two readers could take for two different requests is refused.

use super::filter::Filter;
use crate::listener::AcceptedRequest;
use crate::responses;
use crate::route::{Illegible, legible};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, HOST};
use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Method, Response, Version};

/// Normalizes requests.
#[derive(Clone)]
pub(crate) struct Normalize;

impl Filter for Normalize {
    fn apply(&self, accepted: &mut AcceptedRequest) -> Result<(), Box<Response<Bytes>>> {
        normalize(&mut accepted.parts)
    }
}

/// Checks whom and what a request asks for, and writes it in one way: the host in `Host`, path and query in the target.
fn normalize(parts: &mut Parts) -> Result<(), Box<Response<Bytes>>> {
    let refuse = |detail| Err(Box::new(responses::bad_request(detail)));
    if parts.method == Method::CONNECT {
        return Err(Box::new(responses::no_tunnels()));
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return refuse("There is more than one Host.");
    }
    let is_named = host.is_some() || (parts.version == Version::HTTP_2 && parts.uri.authority().is_some());
    if !is_named && parts.version != Version::HTTP_10 {
        return refuse("Host (HTTP/1.1) or :authority (HTTP/2) is missing.");
    }
    if parts.version == Version::HTTP_2 {
        normalize_http2_headers(&mut parts.headers)?;
    }
    match (parts.uri.scheme(), parts.uri.authority()) {
        (None, None) => {}
        // The target's host counts, whatever `Host` says: RFC 9112.
        (Some(scheme), Some(authority))
            if [Scheme::HTTP, Scheme::HTTPS].contains(scheme) && !authority.as_str().contains('@') =>
        {
            let Ok(host) = HeaderValue::from_str(authority.as_str()) else {
                return refuse("The host in the request target is invalid.");
            };
            parts.headers.insert(HOST, host);
        }
        _ => return refuse("The request target is neither a path nor an http address."),
    }
    match legible(parts.uri.path()) {
        Ok(()) => {}
        Err(Illegible::ControlCharacter) => {
            return refuse("The path of this request contains a percent-encoded control character.");
        }
        Err(Illegible::NotUtf8) => {
            return refuse("The path of this request is not UTF-8 when percent-decoded.");
        }
    }
    if parts.uri.path() == "*" && parts.method != Method::OPTIONS {
        return refuse("The request target * is valid for OPTIONS only.");
    }
    Ok(())
}

/// What HTTP/2 may write otherwise, and what its library lets pass that would be ambiguous in HTTP/1.1.
fn normalize_http2_headers(headers: &mut HeaderMap) -> Result<(), Box<Response<Bytes>>> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let is_number =
        |length: &HeaderValue| !length.is_empty() && length.as_bytes().iter().all(u8::is_ascii_digit);
    if lengths.next().is_some_and(|length| !is_number(length)) || lengths.next().is_some() {
        return Err(Box::new(responses::bad_request("Content-Length is not a plain number.")));
    }
    // RFC 9113, section 8.2.3: cookies may come apart, and belong into one line.
    let cookies: Vec<&[u8]> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() > 1 {
        // Values joined with values are a value.
        if let Ok(cookie) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
            headers.insert(COOKIE, cookie);
        }
    }
    Ok(())
}
