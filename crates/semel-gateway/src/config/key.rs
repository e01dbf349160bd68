//! `[key]`: what a key must look like, and where it is; for all routes, and of one (`key = "optional"`, `[route.key]`).

use super::section::{Given, List, Section, TextForm};
use crate::route::{KeyScopes, RouteKeyScope};
use crate::setting::InvalidValue;
use crate::tenant::ScopeConfig;
use http::HeaderName;
use semel::key::{InvalidKeySource, KeyForm, KeyRules, KeySource, KeySources, KeySyntax};
use semel::problem::Profile;
use semel_tower::KeyRequirement;
use std::ops::RangeInclusive;

// No longer than the known APIs have it, so that a client may use one key for all of them.
const LENGTHS: RangeInclusive<u64> = 1..=255;

/// What holds for every route that says nothing else.
pub(super) struct Keys {
    pub(super) rules: KeyRules,
    pub(super) sources: KeySources,
    pub(super) scopes: KeyScopes,
    /// The headers by which tenants are told apart.
    tenant_headers: Vec<HeaderName>,
}

/// What a route says of its key.
pub(super) struct RouteKey {
    pub(super) need: Option<KeyRequirement>,
    pub(super) sources: KeySources,
    pub(super) scopes: KeyScopes,
    /// `None`: as for all routes.
    pub(super) rules: Option<KeyRules>,
}

pub(super) fn read(mut section: Section<'_, '_>, profile: Profile, scope: &ScopeConfig) -> Keys {
    let default = KeyRules::default();
    let syntax = section.choice(
        "syntax",
        &[
            ("lenient", KeySyntax::Lenient),
            ("structured", KeySyntax::Structured),
            ("opaque", KeySyntax::Opaque),
        ],
    );
    let form = section.choice("form", &KeyForm::ALL.map(|form| (form.as_str(), form)));
    let tenant_headers: Vec<_> = scope.headers().cloned().collect();
    let sources = read_sources(&mut section, &tenant_headers);
    let rules = KeyRules {
        syntax: syntax.map_or(default.syntax, |syntax| syntax.value),
        form: form.map_or_else(|| profile.key_form(), |form| form.value),
        min: profile.min_key_length(),
        max: default.max,
    };
    let rules = read_lengths(&mut section, rules).unwrap_or(rules);
    let scopes = read_scopes(&mut section, KeyScopes { scope: usual_scope(profile), former: None });
    section.end();
    Keys { rules, sources: sources.unwrap_or_else(|| usual_sources(profile)), scopes, tenant_headers }
}

/// Where clients of a profile send their keys.
fn usual_sources(profile: Profile) -> KeySources {
    let texts: &[&str] = match profile {
        Profile::Adcp => &["json:/idempotency_key", "header:idempotency-key"],
        _ => &["header:idempotency-key"],
    };
    let sources = texts.iter().map(|text| text.parse()).collect::<Result<Vec<_>, InvalidKeySource>>();
    sources.and_then(KeySources::new).unwrap_or_default()
}

/// Within what a key of a profile's clients names one request.
const fn usual_scope(profile: Profile) -> RouteKeyScope {
    match profile {
        Profile::Stripe | Profile::Ucp | Profile::Adcp | Profile::Iceberg => RouteKeyScope::Tenant,
        Profile::Acp => RouteKeyScope::Path,
        _ => RouteKeyScope::Operation,
    }
}

fn read_scopes(section: &mut Section<'_, '_>, common: KeyScopes) -> KeyScopes {
    let words = RouteKeyScope::ALL.map(|scope| (scope.as_str(), scope));
    let scope = section.choice("scope", &words).map_or(common.scope, |given| given.value);
    let former = section.choice("former_scope", &words);
    if let Some(Given { value, at }) = &former
        && *value == scope
    {
        let problem = format!("\"{value}\" is the scope that keys have now");
        section.wrong(at, problem, "write the scope that they had before, or remove it");
    }
    KeyScopes { scope, former: former.map_or(common.former, |given| Some(given.value)) }
}

/// `key = "required"`, or a section with `need` and settings of `[key]`.
pub(super) fn read_of_route(route: &mut Section<'_, '_>, heading: &'static str, common: &Keys) -> RouteKey {
    const NEEDS: [(&str, KeyRequirement); 2] =
        [("required", KeyRequirement::Required), ("optional", KeyRequirement::Optional)];
    let word = match route.is_text("key") {
        true => route.choice("key", &NEEDS),
        false => None,
    };
    let mut section = route.section_beside_text("key", heading);
    let need = section.choice("need", &NEEDS);
    let sources = read_sources(&mut section, &common.tenant_headers);
    let rules = read_lengths(&mut section, common.rules);
    let scopes = read_scopes(&mut section, common.scopes);
    section.end();
    RouteKey {
        scopes,
        need: word.or(need).map(|need| need.value),
        sources: sources.unwrap_or_else(|| common.sources.clone()),
        rules,
    }
}

/// The rules with the lengths that the section has; `None` without any.
fn read_lengths(section: &mut Section<'_, '_>, common: KeyRules) -> Option<KeyRules> {
    let least = section.number("min_length", LENGTHS);
    let most = section.number("max_length", LENGTHS);
    let length = |given: &Option<Given<u64>>, default| {
        given.as_ref().and_then(|given| usize::try_from(given.value).ok()).unwrap_or(default)
    };
    let rules = KeyRules { min: length(&least, common.min), max: length(&most, common.max), ..common };
    let given = most.or(least)?;
    if rules.min > rules.max {
        let KeyRules { min, max, .. } = rules;
        let problem = format!("`min_length` ({min}) is more than `max_length` ({max})");
        section.wrong(
            &given.at,
            problem,
            "write a `min_length` that is no more than `max_length` (16 and 255 if left out)",
        );
    }
    Some(rules)
}

fn read_sources(section: &mut Section<'_, '_>, tenant_headers: &[HeaderName]) -> Option<KeySources> {
    const KIND: TextForm = TextForm { what: "a place", example: "header:idempotency-key" };
    let List { items, empty, at } = section.list("from", KIND, |text| {
        let source = text.parse::<KeySource>().map_err(|error| {
            let cure = match &error {
                InvalidKeySource::Pointer(_) => {
                    "write a pointer to a string in the body: \"json:/idempotency_key\""
                }
                InvalidKeySource::Scheme { .. } => {
                    "write \"header:idempotency-key\" or \"json:/idempotency_key\""
                }
                _ => "name the header that clients send the key in: \"header:x-idempotency-key\"",
            };
            InvalidValue::new(error.to_string(), cure)
        })?;
        match &source {
            KeySource::Header(name) if tenant_headers.contains(name) => Err(InvalidValue::new(
                format!("`{name}` tells tenants apart, so it cannot hold the key"),
                "name the header that clients send the key in",
            )),
            _ => Ok(source),
        }
    })?;
    if empty {
        section.wrong(&at, "without a source no request has a key", "write [\"header:idempotency-key\"]");
        return None;
    }
    let mut sources: Vec<KeySource> = Vec::new();
    for Given { value, at } in items {
        if sources.contains(&value) {
            section.wrong(&at, InvalidKeySource::Twice(value).to_string(), "remove one of the two");
        } else {
            sources.push(value);
        }
    }
    KeySources::new(sources).ok()
}
