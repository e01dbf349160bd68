//! `[scope.jwt]`: what tokens are checked with.

use super::super::reading::Secrets;
use super::super::section::{Given, Section, TextForm};
use crate::config::tls;
use crate::secret::Secret;
use crate::setting::InvalidValue;
use crate::tenant::{JwtConfig, JwtKeys, KeyFile, KeySet, KeyUrl};
use semel_http::Endpoint;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const JWKS: TextForm = TextForm { what: "a file or a URL", example: "/etc/semel/jwks.json" };
const PUBLIC_KEY: TextForm = TextForm { what: "a file", example: "/etc/semel/issuer.pem" };
const AUDIENCE: TextForm = TextForm { what: "an audience", example: "https://api.example.com" };
const ISSUER: TextForm = TextForm { what: "an issuer", example: "https://issuer.example.com" };
/// More would make a stolen token good for long after its end.
const MOST_LEEWAY: Duration = Duration::from_secs(10 * 60);

/// `wanted`: where a source asks for it, if one does.
pub(super) fn read(mut section: Section<'_, '_>, wanted: Option<Range<usize>>) -> Option<JwtConfig> {
    let keys = keys(&mut section);
    let audience = section.list("audience", AUDIENCE, text);
    let anybody = section.flag("dangerous_any_audience");
    let issuer = section.list("issuer", ISSUER, text);
    let leeway = section.duration("leeway", "30s", Duration::ZERO..=MOST_LEEWAY);
    match (&wanted, section.is_there()) {
        (Some(at), false) => {
            let cure = "add a section [scope.jwt] with the issuer's keys and your `audience`";
            section.wrong(at, "a `jwt:` source needs keys to verify tokens with", cure);
        }
        (None, true) => not_wanted(&section, "jwt:sub"),
        (Some(_), true) => {
            one_of_the_keys(&section);
            audience_or_anybody(&section, anybody.as_ref());
        }
        (None, false) => {}
    }
    for list in [&audience, &issuer].into_iter().flatten().filter(|list| list.empty) {
        section.wrong(&list.at, "an empty list would refuse every token", "name at least one, or remove it");
    }
    section.end();
    let names = |list: Vec<Given<String>>| list.into_iter().map(|given| given.value).collect();
    Some(JwtConfig {
        keys: keys?,
        audience: audience.map(|list| names(list.items)),
        issuer: issuer.map(|list| names(list.items)),
        leeway: leeway.map_or(JwtConfig::LEEWAY, |given| given.value),
    })
}

fn keys(section: &mut Section<'_, '_>) -> Option<JwtKeys> {
    section.hide_credentials("jwks");
    let files = section.reading.secrets;
    let jwks = section.parsed("jwks", JWKS, |text| jwks(text, files));
    let is_https = matches!(&jwks, Some(Given { value: Jwks::Url(url), .. }) if url.is_https());
    let tls = tls::read_client(section.section("tls", "[scope.jwt.tls]"), "jwks", is_https || jwks.is_none());
    let public_key = section.parsed("public_key", PUBLIC_KEY, |path| {
        if files == Secrets::MadeUp {
            return made_up_keys();
        }
        let cure = "name a file with an RSA or P-256 public key in PEM";
        let pem = std::fs::read(Path::new(path))
            .map_err(|error| InvalidValue::new(format!("{path} cannot be read ({error})"), cure))?;
        KeySet::of_pem(&pem).map_err(|error| InvalidValue::new(format!("{path}: {error}"), cure))
    });
    let secret = section.secret("secret").and_then(|Given { value, at }| {
        let keys = KeySet::of_secret(value.reveal().as_bytes());
        keys.map_err(|error| {
            section.wrong(&at, error.to_string(), "create a longer one, and give it to the issuer too")
        })
        .ok()
    });
    let fixed = |keys| JwtKeys::Fixed(Arc::new(keys));
    let in_set = |jwks: Given<Jwks>| match jwks.value {
        Jwks::File(file) => JwtKeys::File(Arc::new(file)),
        Jwks::Url(url) => JwtKeys::Url(Arc::new(KeyUrl::new(url, tls))),
        Jwks::MadeUp(keys) => fixed(keys),
    };
    jwks.map(in_set).or_else(|| public_key.map(|keys| fixed(keys.value))).or_else(|| secret.map(fixed))
}

/// Where a JWK set is.
enum Jwks {
    File(KeyFile),
    Url(Endpoint),
    MadeUp(KeySet),
}

/// Keys in place of a file that is not at hand.
fn made_up_keys() -> Result<KeySet, InvalidValue> {
    let secret = Secret::placeholder("the issuer's keys");
    KeySet::of_secret(secret.reveal().as_bytes()).map_err(|error| InvalidValue::new(error.to_string(), ""))
}

fn jwks(text: &str, files: Secrets) -> Result<Jwks, InvalidValue> {
    if text.contains("://") {
        let cure = "write the URL of the issuer's JWK set, \"https://issuer.example.com/jwks.json\", or the path of a file";
        return Endpoint::parse(text)
            .map(Jwks::Url)
            .map_err(|error| InvalidValue::new(error.to_string(), cure));
    }
    if files == Secrets::MadeUp {
        return made_up_keys().map(Jwks::MadeUp);
    }
    KeyFile::open(text).map(Jwks::File).map_err(|error| {
        InvalidValue::new(
            format!("{text}: {error}"),
            "name the file with the issuer's JWK set, {\"keys\": […]}",
        )
    })
}

/// One place that the keys come from: with two, it would not be clear which one a token has to fit.
fn one_of_the_keys(section: &Section<'_, '_>) {
    let given = ["jwks", "public_key", "secret"].into_iter().filter(|name| section.has(name)).count();
    match (given, &section.at) {
        (0, _) => section.missing("jwks", JWKS.example),
        (2.., Some(at)) => section.wrong(
            at,
            "token keys are given more than once",
            "keep one of `jwks`, `public_key` and `secret`; a `jwks` can hold several keys of all kinds",
        ),
        _ => {}
    }
}

/// A token that was made for another service of the same issuer must not be good here by forgetting a line.
fn audience_or_anybody(section: &Section<'_, '_>, anybody: Option<&Given<bool>>) {
    match (section.has("audience"), anybody) {
        (false, Some(Given { value: true, .. })) => {}
        (false, _) => section.missing_as("audience", &format!("[\"{}\"]", AUDIENCE.example)),
        (true, Some(Given { value: true, at })) => {
            section.wrong(at, "`dangerous_any_audience` contradicts `audience`", "remove one of the two");
        }
        (true, _) => {}
    }
}

/// A section that says how, where nothing says that.
pub(super) fn not_wanted(section: &Section<'_, '_>, source: &str) {
    if let Some(at) = &section.at {
        let cure = format!("add \"{source}\" to `tenant` in [scope], or remove the section");
        section.wrong(at, format!("this section has no effect: \"{source}\" is not among the sources"), cure);
    }
}

fn text(text: &str) -> Result<String, InvalidValue> {
    match text.is_empty() {
        false => Ok(text.to_owned()),
        true => {
            Err(InvalidValue::new("an empty string matches no token", "write it as it appears in the tokens"))
        }
    }
}
