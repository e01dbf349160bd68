//! Whether a form was sent by one of our own pages.

use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, Uri};

/// Whether browser and headers agree that a page of this origin sent it. Browsers send `Origin` with every POST; a request without one is not from a
/// page, and has to show the form token all the same.
pub(super) fn is_same_origin(headers: &HeaderMap, is_trusted_proxy: bool) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if site.is_some_and(|site| site != b"same-origin") {
        return false;
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return site.is_some(),
        (Some(origin), None) => origin,
        (Some(_), Some(_)) => return false,
    };
    let Some(origin) = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok()) else {
        return false;
    };
    let Some(named) = origin.authority() else { return false };
    let default_port = if origin.scheme_str() == Some("https") { 443 } else { 80 };
    let mut hosts = vec![HOST.as_str()];
    if is_trusted_proxy {
        hosts.push("x-forwarded-host");
    }
    hosts.into_iter().filter_map(|name| headers.get(name)).any(|host| {
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        host.is_some_and(|host| {
            host.host().eq_ignore_ascii_case(named.host())
                && host.port_u16().unwrap_or(default_port) == named.port_u16().unwrap_or(default_port)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn sent(fields: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        is_same_origin(&headers, false)
    }

    #[test]
    fn only_pages_of_this_origin_send_forms() {
        let host = ("host", "semel.example:8081");
        let ours = ("origin", "https://semel.example:8081");
        assert!(sent(&[host, ours]) && sent(&[host, ours, ("sec-fetch-site", "same-origin")]));
        assert!(sent(&[("host", "semel.example"), ("origin", "https://semel.example")]));
        for fields in [
            &[host][..],
            &[host, ("origin", "null")],
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "https://semel.example")],
            &[host, ours, ("sec-fetch-site", "cross-site")],
            &[host, ours, ("sec-fetch-site", "same-site")],
            &[host, ours, ("sec-fetch-site", "none")],
            &[host, ours, ours],
            &[ours],
        ] {
            assert!(!sent(fields), "{fields:?}");
        }
    }

    #[test]
    fn the_host_that_a_proxy_forwards_counts_if_the_proxy_is_trusted() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8081"));
        headers.insert(ORIGIN, HeaderValue::from_static("https://semel.example"));
        headers.insert("x-forwarded-host", HeaderValue::from_static("semel.example"));
        assert!(is_same_origin(&headers, true) && !is_same_origin(&headers, false));
    }
}
