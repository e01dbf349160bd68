//! `[scope]`: whose request it is.

mod forward_auth;
mod jwt;

use super::section::{Given, Section, TextForm};
use crate::setting::InvalidValue;
use crate::tenant::{Network, ReplayCheckConfig, ScopeConfig, TenantFrom};
use http::HeaderName;
use semel::headers::{IDEMPOTENCY_KEY, is_own};
use semel_http::Endpoint;

const SOURCE: TextForm = TextForm { what: "a source of the tenant", example: "header:x-account-id" };
const AUTHORITY: TextForm = TextForm { what: "who is asked", example: "forward-auth" };
const PEER: TextForm = TextForm { what: "an address or a network", example: "127.0.0.0/8" };

pub(super) fn read(mut section: Section<'_, '_>) -> ScopeConfig {
    let mut scope = ScopeConfig::default();
    let sources = section.list("tenant", SOURCE, source);
    if let Some(peers) = section.list("trusted_peers", PEER, Network::parse) {
        scope.trusted_peers = peers.items.iter().map(|peer| peer.value).collect();
        let by_header = |given: &&Given<TenantFrom>| matches!(given.value, TenantFrom::Header(_));
        let believed = sources.iter().flat_map(|sources| &sources.items).find(by_header);
        if let (true, Some(header)) = (peers.empty, believed) {
            let problem = format!("`{}` would never be trusted: `trusted_peers` is empty", header.value);
            section.wrong(&header.at, problem, "name the proxies in `trusted_peers`, or remove the source");
        }
    }
    let sourced = |wanted: fn(&TenantFrom) -> bool| {
        let mut given = sources.iter().flat_map(|sources| &sources.items);
        given.find(|given| wanted(&given.value)).map(|given| given.at.clone())
    };
    let by_token = sourced(|source| matches!(source, TenantFrom::Jwt(_)));
    let by_asking = sourced(|source| *source == TenantFrom::ForwardAuth);
    scope.jwt = jwt::read(section.section("jwt", "[scope.jwt]"), by_token);
    section.hide_credentials("replay_check");
    let replay_check = section.parsed("replay_check", AUTHORITY, authority);
    let before_replays = replay_check.as_ref().filter(|given| given.value.is_none());
    let wanted = by_asking
        .map(|at| (at, "a source"))
        .or(before_replays.map(|given| (given.at.clone(), "to be asked before replays")));
    scope.forward_auth = forward_auth::read(section.section("forward_auth", "[scope.forward_auth]"), wanted);
    scope.replay_check = replay_check.and_then(|given| match given.value {
        Some(url) => Some(ReplayCheckConfig::at(url)),
        None => scope.forward_auth.as_ref().map(ReplayCheckConfig::as_forward_auth),
    });
    if let Some(sources) = sources {
        if sources.empty {
            let cure = "remove `tenant` to tell callers apart by their credential (callers without one share a tenant), or \
                        name a source";
            section.wrong(&sources.at, "`tenant` is an empty list: every request would be refused", cure);
        }
        for Given { value: source, at } in sources.items {
            let is_token = |source: &TenantFrom| matches!(source, TenantFrom::Jwt(_));
            if scope.tenant.contains(&source) {
                section.wrong(&at, format!("`{source}` is given twice"), "remove one of the two");
            } else if is_token(&source) && scope.tenant.iter().any(is_token) {
                let problem =
                    format!("`{source}` would never be used: only one claim of a token can name the tenant");
                section.wrong(&at, problem, "remove one of the two");
            } else if scope.tenant.contains(&TenantFrom::ForwardAuth) {
                let problem = format!("`{source}` would never be used: `forward-auth` always decides");
                section.wrong(&at, problem, "put `forward-auth` last");
            } else {
                scope.tenant.push(source);
            }
        }
    }
    section.end();
    scope
}

/// Who is asked before replays; `None`: whoever forward-auth asks.
fn authority(text: &str) -> Result<Option<Endpoint>, InvalidValue> {
    match text {
        "forward-auth" => Ok(None),
        url if url.contains("://") => forward_auth::address(url).map(Some),
        other => Err(InvalidValue::new(
            format!("`replay_check` cannot be \"{other}\""),
            "write \"forward-auth\" for whom [scope.forward_auth] names, or an address such as \"http://127.0.0.1:9200/auth\"",
        )),
    }
}

/// The word for a source.
fn source(text: &str) -> Result<TenantFrom, InvalidValue> {
    const FORM: &str = "write \"header:NAME\" for a header that a trusted proxy sets, \"jwt:CLAIM\" for a claim of a \
                        verified token, \"forward-auth\" for an authority that is asked, or \"credential\"";
    match text.split_once(':') {
        None if text == "credential" => Ok(TenantFrom::Credential),
        None if text == "forward-auth" => Ok(TenantFrom::ForwardAuth),
        None if text == "header" => {
            Err(InvalidValue::new("the header has no name", "write \"header:x-account-id\""))
        }
        None | Some(("jwt", "")) if text.trim_end_matches(':') == "jwt" => {
            Err(InvalidValue::new("the claim has no name", "write \"jwt:sub\""))
        }
        Some(("jwt", claim)) => Ok(TenantFrom::Jwt(claim.trim().to_owned())),
        Some(("header", name)) => header(name.trim()),
        _ => Err(InvalidValue::new(format!("\"{text}\" is not a source of the tenant"), FORM)),
    }
}

fn header(text: &str) -> Result<TenantFrom, InvalidValue> {
    const CREDENTIALS: [&str; 5] = ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"];
    let name = header_name(text, "header:x-account-id")?;
    if CREDENTIALS.contains(&name.as_str()) {
        let problem =
            format!("`{name}` is a credential, and tenant names are stored and shown in plain text");
        return Err(InvalidValue::new(problem, "write \"credential\", which is hashed"));
    }
    if name == IDEMPOTENCY_KEY || is_own(name.as_str()) {
        let problem = format!("`{name}` is Semel's own header and does not identify the caller");
        return Err(InvalidValue::new(
            problem,
            "name the header in which the proxy in front sends the account",
        ));
    }
    Ok(TenantFrom::Header(name))
}

fn header_name(text: &str, example: &str) -> Result<HeaderName, InvalidValue> {
    HeaderName::try_from(text).map_err(|_| {
        InvalidValue::new(format!("\"{text}\" is not the name of a header"), format!("write \"{example}\""))
    })
}
