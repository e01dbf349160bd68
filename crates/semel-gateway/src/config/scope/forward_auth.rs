//! `[scope.forward_auth]`: who is asked whose request it is.

use super::super::section::{Section, TextForm};
use super::header_name;
use super::jwt::not_wanted;
use crate::config::tls;
use crate::setting::InvalidValue;
use crate::tenant::ForwardAuthConfig;
use http::HeaderName;
use semel::headers::is_hop_by_hop;
use semel_http::{Endpoint, InvalidEndpoint};
use std::ops::Range;
use std::time::Duration;

const URL: TextForm = TextForm { what: "an address", example: "http://127.0.0.1:9200/auth" };
const SENT: TextForm = TextForm { what: "the name of a header", example: "authorization" };
const TENANT: TextForm = TextForm { what: "the name of a header", example: "x-account-id" };

/// `wanted`: where the file asks for it, if it does, and as what.
pub(super) fn read(
    mut section: Section<'_, '_>,
    wanted: Option<(Range<usize>, &'static str)>,
) -> Option<ForwardAuthConfig> {
    section.hide_credentials("url");
    let url = section.parsed("url", URL, address);
    let tenant_header = section.parsed("tenant_header", TENANT, |text| header_name(text, TENANT.example));
    let headers = section.list("headers", SENT, sent);
    let deadline = section.duration("deadline", "2s", Duration::from_millis(10)..=Duration::from_secs(60));
    let cache = section.duration("cache", "10s", Duration::from_millis(10)..=Duration::from_secs(60 * 60));
    match (&wanted, section.is_there()) {
        (Some((at, what)), false) => {
            let cure = "add a section [scope.forward_auth] with `url` and `tenant_header`";
            section.wrong(at, format!("`forward-auth` is {what}, and [scope.forward_auth] is missing"), cure);
        }
        (None, true) => not_wanted(&section, "forward-auth"),
        (Some(_), true) => {
            for (name, kind) in [("url", URL), ("tenant_header", TENANT)] {
                if !section.has(name) {
                    section.missing(name, kind.example);
                }
            }
        }
        (None, false) => {}
    }
    let is_https = url.as_ref().is_none_or(|given| given.value.is_https());
    let tls = tls::read_client(section.section("tls", "[scope.forward_auth.tls]"), "url", is_https);
    section.end();
    Some(ForwardAuthConfig {
        url: url?.value,
        tls,
        tenant_header: tenant_header?.value,
        headers: headers.map_or_else(
            || ForwardAuthConfig::HEADERS.into(),
            |headers| headers.items.into_iter().map(|given| given.value).collect(),
        ),
        deadline: deadline.map_or(ForwardAuthConfig::DEADLINE, |given| given.value),
        cache: cache.map(|given| given.value),
    })
}

pub(super) fn address(text: &str) -> Result<Endpoint, InvalidValue> {
    let wrong =
        |problem: &str| InvalidValue::new(problem, format!("write an address such as \"{}\"", URL.example));
    if text.contains('#') {
        return Err(wrong("the address has a fragment, which is not sent"));
    }
    Endpoint::parse(text).map_err(|error| match error {
        InvalidEndpoint::Credentials => {
            wrong("the address has a user name or password, which would never be sent")
        }
        InvalidEndpoint::Scheme => wrong("forward-auth needs http:// or https://"),
        InvalidEndpoint::Port => wrong("the address has no valid port"),
        _ => wrong("this is not an address"),
    })
}

/// A header of the request that is sent along.
fn sent(text: &str) -> Result<HeaderName, InvalidValue> {
    // Of one body, as hop-by-hop fields are of one connection: a question has neither.
    const NOT_SENT: [&str; 3] = ["content-length", "expect", "host"];
    let name = header_name(text, SENT.example)?;
    if NOT_SENT.contains(&name.as_str()) || is_hop_by_hop(name.as_str()) {
        return Err(InvalidValue::new(
            format!("`{name}` is about one request or one connection"),
            "remove it",
        ));
    }
    if name.as_str().starts_with("x-forwarded-") || name == "forwarded" {
        let problem = format!("`{name}` is set by the gateway itself");
        return Err(InvalidValue::new(problem, "remove it: the gateway always sends it"));
    }
    Ok(name)
}
