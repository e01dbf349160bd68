//! `[admin]`: where operators are served, and who they are.

use super::section::{Given, Section, TextForm};
use super::{AdminConfig, DEFAULT_ADMIN_LISTEN, LISTEN, address, tls};
use crate::identity::{
    ADMIN, Directory, ProxyIdentity, ProxyRoles, Role, TenantPattern, Tenants, User, is_name,
};
use crate::setting::InvalidValue;
use crate::tenant::Network;
use http::HeaderName;
use std::net::SocketAddr;

const NAME: TextForm = TextForm { what: "a name", example: "oncall" };
const GROUP: TextForm = TextForm { what: "a group", example: "oncall" };
const HEADER: TextForm = TextForm { what: "the name of a header", example: "x-forwarded-user" };
const PEER: TextForm = TextForm { what: "an address or a network", example: "10.0.0.5" };
const TENANT: TextForm = TextForm { what: "a tenant, or how its name begins", example: "acct_*" };

/// What `[admin]` says, and what is checked beside other sections.
pub(super) struct Read {
    pub(super) config: AdminConfig,
    pub(super) listen: Option<Given<SocketAddr>>,
    /// Whether callers have to authenticate, valid or not as the setting may be.
    pub(super) is_guarded: bool,
}

pub(super) fn read(mut section: Section<'_, '_>) -> Read {
    let listen = section.parsed("listen", LISTEN, address::listen);
    let token = section.secret("token");
    let is_guarded = section.has("token") || section.has("user") || section.has("identity");
    let tls = tls::read_server(section.section("tls", "[admin.tls]"));
    let users = read_users(section.sections("user", "[[admin.user]]"), token.as_ref());
    let proxy = read_proxy(section.section("identity", "[admin.identity]"));
    section.end();
    let config = AdminConfig {
        listen: listen.as_ref().map_or(DEFAULT_ADMIN_LISTEN, |listen| listen.value),
        people: Directory { token: token.map(|token| token.value), users, proxy },
        tls,
    };
    Read { config, listen, is_guarded }
}

fn name(text: &str) -> Result<String, InvalidValue> {
    if text == ADMIN {
        let problem = "the name \"admin\" is reserved for `[admin] token`";
        return Err(InvalidValue::new(problem, "write another name: \"oncall\""));
    }
    match is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(InvalidValue::new(
            "invalid user name",
            "write up to 100 characters, without control characters or blanks around them",
        )),
    }
}

fn role(section: &mut Section<'_, '_>) -> Option<Role> {
    let role = section.choice("role", &Role::ALL.map(|role| (role.as_str(), role)));
    if !section.has("role") {
        section.missing("role", "operator");
    }
    role.map(|role| role.value)
}

fn read_users(sections: Vec<Section<'_, '_>>, shared: Option<&Given<crate::secret::Secret>>) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    for mut section in sections {
        let name = section.parsed("name", NAME, name);
        if !section.has("name") {
            section.missing("name", "oncall");
        }
        let token = section.secret("token");
        if !section.has("token") {
            section.missing("token", "env:SEMEL_ONCALL");
        }
        let role = role(&mut section);
        let tenants = section.list("tenants", TENANT, |text| {
            TenantPattern::parse(text)
                .map_err(|problem| InvalidValue::new(problem, "write \"acct_1\" or \"acct_*\""))
        });
        let tenants = match tenants {
            None => Tenants::All,
            Some(list) => {
                if list.empty {
                    let cure = "leave `tenants` out for all tenants, or name some";
                    section.wrong(&list.at, "`tenants` is an empty list: the user would see nothing", cure);
                }
                Tenants::Only(list.items.into_iter().map(|given| given.value).collect())
            }
        };
        if let Some(name) = &name
            && users.iter().any(|user| user.name == name.value)
        {
            section.wrong(&name.at, format!("duplicate user name \"{}\"", name.value), "rename one of them");
        }
        if let Some(token) = &token {
            let is_taken = users.iter().any(|user| user.token == token.value)
                || shared.is_some_and(|shared| shared.value == token.value);
            if is_taken {
                let cure = "give each user a unique token: it identifies the user";
                section.wrong(&token.at, "another user has the same token", cure);
            }
        }
        section.end();
        if let (Some(name), Some(token), Some(role)) = (name, token, role) {
            users.push(User { name: name.value, token: token.value, role, tenants });
        }
    }
    users
}

fn header(text: &str) -> Result<HeaderName, InvalidValue> {
    HeaderName::try_from(text).map_err(|_| {
        InvalidValue::new(format!("\"{text}\" is not the name of a header"), "write \"x-forwarded-user\"")
    })
}

fn read_proxy(mut section: Section<'_, '_>) -> Option<ProxyIdentity> {
    let is_there = section.is_there();
    let name = section.parsed("header", HEADER, header);
    let roles = read_roles(section.section("roles", "[admin.identity.roles]"));
    let peers = section.list("trusted_peers", PEER, Network::parse);
    if is_there && !section.has("header") {
        section.missing("header", "x-forwarded-user");
    }
    match &peers {
        None if is_there && !section.has("trusted_peers") => {
            section.missing_as("trusted_peers", "[\"10.0.0.5\"]");
        }
        Some(peers) if peers.empty => {
            let problem = "the header would never be trusted: `trusted_peers` is empty";
            section.wrong(&peers.at, problem, "name the address of the proxy");
        }
        _ => {}
    }
    section.end();
    let trusted_peers = peers?.items.into_iter().map(|peer| peer.value).collect();
    Some(ProxyIdentity { header: name?.value, roles, trusted_peers })
}

fn read_roles(mut section: Section<'_, '_>) -> Option<ProxyRoles> {
    if !section.is_there() {
        return None;
    }
    let name = section.parsed("header", HEADER, header);
    if !section.has("header") {
        section.missing("header", "x-forwarded-groups");
    }
    let mut groups = Vec::new();
    for role in Role::ALL {
        let group = section.parsed(role.as_str(), GROUP, |text| match is_name(text) && !text.contains(',') {
            true => Ok(text.to_owned()),
            false => {
                Err(InvalidValue::new("invalid group name", "write the name of one group, without commas"))
            }
        });
        groups.extend(group.map(|group| (role, group.value)));
    }
    section.end();
    Some(ProxyRoles { header: name?.value, groups })
}
