//! Who is known, and whether a request is from one of them.

use super::proxy::Named;
use super::{ADMIN, Identity, ProxyIdentity, Role, Source, Tenants};
use crate::secret::Secret;
use http::header::{AUTHORIZATION, HOST};
use http::{HeaderMap, uri::Authority};
use sha2::{Digest, Sha256};
use std::net::IpAddr;

/// An `[[admin.user]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Their name.
    pub name: String,
    /// Their bearer token.
    pub token: Secret,
    /// What they may do.
    pub role: Role,
    /// Whose operations they may see.
    pub tenants: Tenants,
}

/// Everybody who may use the admin API.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Directory {
    /// The token of `[admin]`: an admin called `admin`.
    pub token: Option<Secret>,
    /// The users that are named.
    pub users: Vec<User>,
    /// The proxy that authenticates others.
    pub proxy: Option<ProxyIdentity>,
}

/// Where a request comes from and what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// The address of the peer.
    pub peer: Option<IpAddr>,
    /// The request's headers.
    pub headers: &'a HeaderMap,
}

/// Why a caller was not authenticated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rejected {
    /// No credentials, where some are needed.
    NoCredentials,
    /// An unknown token.
    WrongToken,
    /// The proxy named a user without a role.
    WithoutRole(String),
    /// The proxy's headers cannot be understood.
    UnreadableIdentity,
    /// No user is configured, and the request is from another machine.
    NotFromHere,
    /// No user is configured, and the request does not name this machine.
    AnotherName,
}

impl Directory {
    /// Whether any user is configured. If not, only this machine may read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.token.is_none() && self.users.is_empty() && self.proxy.is_none()
    }

    /// Whose request it is.
    ///
    /// # Errors
    /// Why it authenticates no user.
    pub fn authenticate(&self, caller: Caller<'_>) -> Result<Identity, Rejected> {
        let shown = bearer(caller.headers);
        if let Some(identity) = shown.and_then(|token| self.by_token(token)) {
            return Ok(identity);
        }
        if let (Some(proxy), Some(peer)) = (&self.proxy, caller.peer) {
            match proxy.named(peer, caller.headers) {
                Named::Somebody(identity) => return Ok(identity),
                Named::WithoutRole(name) => return Err(Rejected::WithoutRole(name)),
                Named::Unreadable => return Err(Rejected::UnreadableIdentity),
                Named::Nobody => {}
            }
        }
        if !self.is_empty() {
            return Err(if shown.is_some() { Rejected::WrongToken } else { Rejected::NoCredentials });
        }
        if !caller.peer.is_some_and(|peer| peer.to_canonical().is_loopback()) {
            return Err(Rejected::NotFromHere);
        }
        // A page in a browser on this machine can send requests here under a name of its own (DNS rebinding), and would read the
        // answers. Whoever means this machine names it.
        if !names_loopback(caller.headers) {
            return Err(Rejected::AnotherName);
        }
        Ok(Identity::loopback())
    }

    /// Whose token this is. All are compared, so that the time it takes tells nothing.
    #[must_use]
    pub fn by_token(&self, shown: &[u8]) -> Option<Identity> {
        let mut found = None;
        if self.token.as_ref().is_some_and(|token| token.matches(shown)) {
            found = Some(admin());
        }
        for user in &self.users {
            if user.token.matches(shown) {
                found = Some(user.identity());
            }
        }
        found
    }

    /// Who has this name now, by token; and what changes with their token. For sessions, which outlive the request that began them.
    #[must_use]
    pub fn by_name(&self, name: &str, source: Source) -> Option<(Identity, [u8; 32])> {
        match source {
            Source::Token => self.token.as_ref().map(|token| (admin(), digest(token))),
            Source::User => {
                let user = self.users.iter().find(|user| user.name == name)?;
                Some((user.identity(), digest(&user.token)))
            }
            Source::Proxy | Source::Loopback => None,
        }
    }

    /// Whether what this peer says of others is believed.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.proxy.as_ref().is_some_and(|proxy| proxy.trusts(peer))
    }
}

impl User {
    fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            source: Source::User,
            role: self.role,
            tenants: self.tenants.clone(),
        }
    }
}

fn admin() -> Identity {
    Identity { name: ADMIN.into(), source: Source::Token, role: Role::Admin, tenants: Tenants::All }
}

fn digest(token: &Secret) -> [u8; 32] {
    Sha256::digest(token.reveal()).into()
}

/// The token that a request shows. Two of them count as missing: it is ambiguous which one is meant.
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut fields = headers.get_all(AUTHORIZATION).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else { return None };
    let (scheme, token) = field.as_bytes().split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

fn names_loopback(headers: &HeaderMap) -> bool {
    let mut named = headers.get_all(HOST).iter();
    let (Some(host), None) = (named.next(), named.next()) else { return false };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.to_canonical().is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: http::HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn a_token_is_read_in_any_spelling_of_its_scheme() {
        for field in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(bearer(&headers(AUTHORIZATION, &[field])), Some(&b"abc"[..]), "{field}");
        }
        for fields in [&[][..], &["abc"], &["Basic abc"], &["Bearer"], &["Bearer abc", "Bearer abc"]] {
            assert_eq!(bearer(&headers(AUTHORIZATION, fields)), None, "{fields:?}");
        }
    }

    #[test]
    fn only_names_of_this_machine_name_it() {
        for host in ["localhost", "LocalHost:8081", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:8081"] {
            assert!(names_loopback(&headers(HOST, &[host])), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "[::2]:80", "", "127.0.0.1.evil.example"]
        {
            assert!(!names_loopback(&headers(HOST, &[host])), "{host}");
        }
        assert!(!names_loopback(&HeaderMap::new()));
    }

    #[test]
    fn an_address_of_this_machine_is_known_in_both_families() {
        let headers = headers(HOST, &["localhost"]);
        for (address, here) in
            [("127.0.0.1", true), ("::1", true), ("::ffff:127.0.0.1", true), ("10.0.0.1", false)]
        {
            let caller = Caller { peer: address.parse().ok(), headers: &headers };
            assert_eq!(Directory::default().authenticate(caller).is_ok(), here, "{address}");
        }
    }

    #[test]
    fn a_token_names_its_user_and_the_shared_one_an_admin() {
        let directory = Directory {
            token: Some(Secret::new("shared").unwrap()),
            users: vec![User {
                name: "oncall".into(),
                token: Secret::new("mine").unwrap(),
                role: Role::Operator,
                tenants: Tenants::All,
            }],
            proxy: None,
        };
        let named = |token: &'static str| {
            let headers = headers(AUTHORIZATION, &[token]);
            directory.authenticate(Caller { peer: None, headers: &headers })
        };
        let admin = named("Bearer shared").unwrap();
        assert_eq!((admin.to_string().as_str(), admin.role), ("token:admin", Role::Admin));
        let oncall = named("Bearer mine").unwrap();
        assert_eq!((oncall.to_string().as_str(), oncall.role), ("token:oncall", Role::Operator));
        assert_eq!(named("Bearer other"), Err(Rejected::WrongToken));
    }
}
