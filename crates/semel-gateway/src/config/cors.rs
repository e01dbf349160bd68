//! `[cors]`: which pages of other origins may use the API from a browser.

use super::section::{Section, TextForm};
use crate::setting::InvalidValue;
use http::uri::Authority;
use http::{HeaderName, Method};
use std::time::Duration;

/// Which pages of other origins may use the API from a browser, and what they may send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CorsConfig {
    /// Whose pages.
    pub origins: AllowedOrigins,
    /// The methods that they may use. Default: those of the routes, GET and HEAD.
    pub methods: Option<Vec<Method>>,
    /// The request headers that they may set. Default: `Content-Type`, `Authorization` and the key's.
    pub headers: Option<Vec<HeaderName>>,
    /// Whether browsers send cookies and client certificates along. Default: no.
    pub credentials: bool,
    /// How long a browser may remember the answer to a preflight. Default 10 minutes.
    pub max_age: Duration,
}

/// The origins whose pages may use the API.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllowedOrigins {
    /// Every one.
    Any,
    /// These, each as browsers spell it: `https://app.example`, `http://localhost:3000`.
    Listed(Vec<String>),
}

const ORIGIN: TextForm = TextForm { what: "an origin", example: "https://app.example" };
const METHOD: TextForm = TextForm { what: "a method", example: "POST" };
const HEADER: TextForm = TextForm { what: "the name of a header", example: "content-type" };
const MAX_AGE: Duration = Duration::from_secs(10 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn read(mut section: Section<'_, '_>) -> Option<CorsConfig> {
    if !section.is_there() {
        return None;
    }
    let origins = section.list("allow_origins", ORIGIN, origin);
    let methods = section.list("allow_methods", METHOD, method);
    let headers = section.list("allow_headers", HEADER, header);
    let credentials = section.flag("allow_credentials");
    let max_age = section.duration("max_age", "10m", Duration::from_secs(1)..=DAY);
    if !section.has("allow_origins") {
        section.missing_as("allow_origins", "[\"https://app.example\"]");
    }
    let mut listed: Vec<String> = Vec::new();
    let mut any = None;
    for given in origins.iter().flat_map(|origins| &origins.items) {
        match given.value.as_str() {
            "*" => any = Some(given.at.clone()),
            origin if listed.iter().any(|other| other == origin) => {
                section.wrong(&given.at, format!("`{origin}` is given twice"), "remove one of the two");
            }
            origin => listed.push(origin.to_owned()),
        }
    }
    if let Some(origins) = &origins
        && origins.empty
    {
        let cure = "name an origin, or remove the section [cors]";
        section.wrong(&origins.at, "`allow_origins` is an empty list: no page could use the API", cure);
    }
    if let Some(at) = &any {
        if !listed.is_empty() {
            let cure = "remove \"*\", or every other origin";
            section.wrong(at, "`*` allows every origin, so the others have no effect", cure);
        }
        if credentials.as_ref().is_some_and(|given| given.value) {
            let cure = "name the origins whose pages may send credentials, or remove `allow_credentials`";
            section.wrong(
                at,
                "`*` and `allow_credentials` together would let every page act for its visitor",
                cure,
            );
        }
    }
    section.end();
    let values = |list: super::section::List<_>| list.items.into_iter().map(|given| given.value).collect();
    Some(CorsConfig {
        origins: if any.is_some() { AllowedOrigins::Any } else { AllowedOrigins::Listed(listed) },
        methods: methods.map(|list| list.items.into_iter().map(|given| given.value).collect()),
        headers: headers.map(values),
        credentials: credentials.is_some_and(|given| given.value),
        max_age: max_age.map_or(MAX_AGE, |given| given.value),
    })
}

/// An origin as browsers send it: they are compared byte by byte.
fn origin(text: &str) -> Result<String, InvalidValue> {
    let wrong = |problem: String, cure: String| Err(InvalidValue::new(problem, cure));
    if text == "*" {
        return Ok(text.to_owned());
    }
    if text == "null" {
        let problem = "`null` is what every sandboxed frame and every local file sends as its origin";
        return wrong(problem.into(), "serve the page from an origin of its own, and name that".into());
    }
    let Some((scheme, host)) = text.split_once("://") else {
        return wrong(format!("the origin \"{text}\" has no scheme"), format!("write \"https://{text}\""));
    };
    if text.contains('*') {
        let problem = format!("\"{text}\" is a pattern, and origins are compared as they are");
        return wrong(problem, "name each origin; \"*\" alone allows every one".into());
    }
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let problem = format!("browsers send origins in lower case, and \"{text}\" is not");
        return wrong(problem, format!("write \"{}\"", text.to_ascii_lowercase()));
    }
    if let Some(slash) = host.find(['/', '?', '#']) {
        let problem = format!("\"{text}\" has a path, and an origin ends with its host and port");
        return wrong(problem, format!("write \"{scheme}://{}\"", &host[..slash]));
    }
    let default_port = match scheme {
        "https" => ":443",
        "http" => ":80",
        _ => "\n",
    };
    if let Some(name) = host.strip_suffix(default_port) {
        let problem = format!("browsers leave the default port out, and \"{text}\" names it");
        return wrong(problem, format!("write \"{scheme}://{name}\""));
    }
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_host = !host.contains('@')
        && host.parse::<Authority>().is_ok_and(|authority| {
            let port = host.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
            !authority.host().is_empty() && (port.is_none() || authority.port_u16().is_some())
        });
    if !is_scheme || !is_host {
        let cure = "write scheme://host or scheme://host:port, such as \"https://app.example\"";
        return wrong(format!("\"{text}\" is not an origin"), cure.into());
    }
    Ok(text.to_owned())
}

fn method(text: &str) -> Result<Method, InvalidValue> {
    let cure = format!("write it as requests do: \"{}\"", text.to_ascii_uppercase());
    let method = Method::from_bytes(text.as_bytes()).ok().filter(|_| text != "*");
    let Some(method) = method else {
        return Err(InvalidValue::new(
            format!("\"{text}\" is not a method"),
            "name each method, such as \"POST\"",
        ));
    };
    if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Err(InvalidValue::new(
            format!("methods are compared as they are, and \"{text}\" is not one"),
            cure,
        ));
    }
    Ok(method)
}

fn header(text: &str) -> Result<HeaderName, InvalidValue> {
    HeaderName::try_from(text).ok().filter(|name| name.as_str() != "*").ok_or_else(|| {
        InvalidValue::new(
            format!("\"{text}\" is not the name of a header"),
            "name each header, such as \"content-type\"",
        )
    })
}
