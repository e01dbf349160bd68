//! What header fields are, by their names.

use http::header::{CONNECTION, HeaderMap, HeaderName};
use semel::headers::{self, IDEMPOTENCY_KEY, is_own};
use std::borrow::Cow;
use std::sync::Arc;

/// A name as CGI and its heirs see it: there `X-Real-IP`, `X_Real_IP` and, to PHP, `X.Real.IP` are one variable.
pub(crate) fn folded(name: &str) -> Cow<'_, str> {
    if name.bytes().all(is_usual) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.bytes().map(|byte| if is_usual(byte) { char::from(byte) } else { '-' }).collect())
}

fn is_usual(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Whether a field is about one connection alone: hop-by-hop, or between a client and a proxy.
pub(crate) fn is_hop_by_hop(name: &str) -> bool {
    headers::is_hop_by_hop(name) || name.starts_with("proxy-")
}

/// Whether a service could take a field for one of ours, or for another that is judged here by its name, though we do not.
pub(crate) fn is_mistakable(name: &str) -> bool {
    match folded(name) {
        Cow::Borrowed(_) => false,
        Cow::Owned(seen_as) => is_own(&seen_as) || is_hop_by_hop(&seen_as) || is_decisive(&seen_as),
    }
}

/// The header of a key that a field is under a name that we do not read, and that a service behind CGI would.
pub(crate) fn misspelt_key<'k>(name: &str, key_headers: &'k [HeaderName]) -> Option<&'k HeaderName> {
    let is_meant =
        |key: &&HeaderName| name.len() == key.as_str().len() && name != **key && folded(name) == key.as_str();
    key_headers.iter().find(is_meant)
}

/// Whether a field tells a service of another method than the request's own. Some frameworks believe it unless told not to.
pub(crate) fn is_method_override(name: &str) -> bool {
    matches!(name.len(), 13 | 17 | 22)
        && matches!(&*folded(name), "x-http-method" | "x-method-override" | "x-http-method-override")
}

/// The fields that tell a service of another target than the request's own. Those who stand behind IIS, or could, believe them.
pub(crate) const TARGETS: [HeaderName; 3] = [
    HeaderName::from_static("x-original-url"),
    HeaderName::from_static("x-rewrite-url"),
    HeaderName::from_static("x-override-url"),
];

/// Whether a field tells a service who a request's client is, or what it asked a proxy for. Such fields are for proxies to set.
pub(crate) fn is_identity(name: &str) -> bool {
    matches!(
        name,
        "forwarded"
            | "forwarded-for"
            | "x-forwarded"
            | "x-real-ip"
            | "true-client-ip"
            | "client-ip"
            | "x-client-ip"
            | "x-cluster-client-ip"
            | "x-remote-ip"
            | "x-remote-addr"
            | "x-originating-ip"
            | "x-proxyuser-ip"
            | "cf-connecting-ip"
            | "cf-connecting-ipv6"
            | "cf-pseudo-ipv4"
            | "fastly-client-ip"
            | "fly-client-ip"
            | "cloudfront-viewer-address"
            | "x-azure-clientip"
            | "x-azure-socketip"
            | "x-appengine-user-ip"
            | "x-envoy-external-address"
            | "x-vercel-forwarded-for"
            | "x-nf-client-connection-ip"
            | "wl-proxy-client-ip"
            | "front-end-https"
            | "x-scheme"
            | "x-url-scheme"
            | "x-arr-ssl"
            | "x-override-url"
    ) || name.starts_with("x-forwarded-")
        || name.starts_with("x-original-")
        || name.starts_with("x-rewrite-")
}

/// Whether a field says which request it is, or whose, in every configuration.
fn is_decisive(name: &str) -> bool {
    matches!(
        name,
        "authorization"
            | "x-api-key"
            | "cookie"
            | "host"
            | "content-length"
            | "content-type"
            | "content-encoding"
    ) || name == IDEMPOTENCY_KEY
        || is_identity(name)
}

/// The fields that say which request it is, or whose: no client may have them dropped on the way, or add them as trailers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decisive(Arc<[Box<str>]>);

impl Decisive {
    /// The usual ones, and these: the headers by which this gateway tells tenants apart.
    pub(crate) fn with<'a>(names: impl IntoIterator<Item = &'a HeaderName>) -> Self {
        Self(names.into_iter().map(|name| folded(name.as_str()).into()).collect())
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        let seen_as = folded(name);
        is_decisive(&seen_as) || self.0.iter().any(|own| **own == *seen_as)
    }

    /// Whether `Connection` names one of them, as if it were about the connection alone.
    pub(crate) fn is_named_by_connection(&self, headers: &HeaderMap) -> bool {
        let options =
            headers.get_all(CONNECTION).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
        options
            // What is no name names no field.
            .filter_map(|option| HeaderName::from_bytes(option.trim_ascii()).ok())
            .any(|name| self.contains(name.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_name_is_known_under_every_spelling_that_cgi_has_for_it() {
        let keys = [IDEMPOTENCY_KEY, HeaderName::from_static("x-key")];
        let is_misspelt_key = |name: &str| misspelt_key(name, &keys).is_some();
        for name in ["idempotency_key", "idempotency.key", "idempotency~key"] {
            assert!(is_misspelt_key(name) && is_mistakable(name), "{name}");
        }
        assert!(!is_misspelt_key(IDEMPOTENCY_KEY.as_str()) && !is_misspelt_key("idempotency_keys"));
        assert!(is_misspelt_key("x_key") && !is_misspelt_key("x-key"));
        for name in
            ["x_real_ip", "x-forwarded_for", "semel_attempt", "x_api_key", "transfer_encoding", "proxy_x"]
        {
            assert!(is_mistakable(name), "{name}");
        }
        for name in ["x-real-ip", "x_stays", "semelparous", "x_hosts"] {
            assert!(!is_mistakable(name), "{name}");
        }
        for name in ["x-http-method-override", "x_http.method-override", "x-http_method", "x_method_override"]
        {
            assert!(is_method_override(name), "{name}");
        }
        assert!(!is_method_override("x-http-methods"));
    }

    #[test]
    fn connection_may_not_name_what_says_whose_request_it_is() {
        let decisive = Decisive::with([&HeaderName::from_static("x-account-id")]);
        let named = |options| {
            let mut headers = HeaderMap::new();
            headers.append(CONNECTION, HeaderValue::from_static("close"));
            headers.append(CONNECTION, HeaderValue::from_static(options));
            decisive.is_named_by_connection(&headers)
        };
        for options in [
            "Idempotency-Key",
            "te, X-Account-Id ",
            "x_account_id",
            "AUTHORIZATION",
            "x-forwarded-for",
            "cookie",
        ] {
            assert!(named(options), "{options}");
        }
        for options in ["keep-alive, Upgrade, HTTP2-Settings", "x-mine", "(none)", "", "te"] {
            assert!(!named(options), "{options}");
        }
    }
}
