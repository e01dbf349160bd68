//! Names that an identity-aware proxy sends in headers.

use super::{Identity, Role, Source, Tenants, is_name};
use crate::tenant::Network;
use http::{HeaderMap, HeaderName};
use std::net::IpAddr;

/// The headers of an identity-aware proxy (oauth2-proxy, say), and the peers that are believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProxyIdentity {
    /// The header with the name.
    pub header: HeaderName,
    /// Which groups have which role; `None`: everybody whom the proxy lets through is a reader.
    pub roles: Option<ProxyRoles>,
    /// The proxies. From all other peers the headers count for nothing.
    pub trusted_peers: Vec<Network>,
}

/// Which groups have which role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProxyRoles {
    /// The header with the groups, separated by commas.
    pub header: HeaderName,
    /// The group of each role.
    pub groups: Vec<(Role, String)>,
}

/// What a proxy's headers come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The peer is not a trusted proxy, or names no user.
    Nobody,
    /// This person.
    Somebody(Identity),
    /// A person without a role.
    WithoutRole(String),
    /// Headers that cannot be understood: two names, or one that is not text.
    Unreadable,
}

impl ProxyIdentity {
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted_peers.iter().any(|network| network.contains(peer))
    }

    pub(super) fn named(&self, peer: IpAddr, headers: &HeaderMap) -> Named {
        if !self.trusts(peer) {
            return Named::Nobody;
        }
        let mut fields = headers.get_all(&self.header).iter();
        let name = match (fields.next(), fields.next()) {
            (None, _) => return Named::Nobody,
            (Some(field), None) => std::str::from_utf8(field.as_bytes()).ok(),
            (Some(_), Some(_)) => None,
        };
        let Some(name) = name.filter(|name| is_name(name)) else { return Named::Unreadable };
        let role = match &self.roles {
            None => Some(Role::Reader),
            Some(roles) => roles.of(headers),
        };
        match role {
            None => Named::WithoutRole(name.to_owned()),
            Some(role) => Named::Somebody(Identity {
                name: name.to_owned(),
                source: Source::Proxy,
                role,
                tenants: Tenants::All,
            }),
        }
    }
}

impl ProxyRoles {
    /// The highest role of the groups that the headers name.
    fn of(&self, headers: &HeaderMap) -> Option<Role> {
        let fields = headers.get_all(&self.header).iter();
        let texts = fields.filter_map(|field| std::str::from_utf8(field.as_bytes()).ok());
        let groups: Vec<&str> = texts.flat_map(|text| text.split(',')).map(str::trim).collect();
        let held = self.groups.iter().filter(|(_, group)| groups.contains(&group.as_str()));
        held.map(|(role, _)| *role).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn proxy() -> ProxyIdentity {
        ProxyIdentity {
            header: HeaderName::from_static("x-forwarded-user"),
            roles: Some(ProxyRoles {
                header: HeaderName::from_static("x-forwarded-groups"),
                groups: vec![(Role::Reader, "support".into()), (Role::Operator, "oncall".into())],
            }),
            trusted_peers: vec![Network::parse("10.0.0.5").unwrap()],
        }
    }

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    const PROXY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 5));

    #[test]
    fn the_highest_role_of_the_groups_counts() {
        for (groups, role) in [
            ("support", Some(Role::Reader)),
            ("a, oncall ,support", Some(Role::Operator)),
            ("oncalls", None),
            ("", None),
        ] {
            let named = proxy().named(
                PROXY,
                &headers(&[("x-forwarded-user", "ada@example.com"), ("x-forwarded-groups", groups)]),
            );
            match (named, role) {
                (Named::Somebody(identity), Some(role)) => {
                    assert_eq!(
                        (identity.role, identity.to_string().as_str()),
                        (role, "proxy:ada@example.com")
                    );
                }
                (Named::WithoutRole(name), None) => assert_eq!(name, "ada@example.com"),
                (other, _) => panic!("{groups}: {other:?}"),
            }
        }
    }

    #[test]
    fn nobody_else_is_believed_and_two_names_are_not_guessed_between() {
        let told = headers(&[("x-forwarded-user", "ada"), ("x-forwarded-groups", "oncall")]);
        assert_eq!(proxy().named("10.0.0.6".parse().unwrap(), &told), Named::Nobody);
        assert_eq!(proxy().named(PROXY, &HeaderMap::new()), Named::Nobody);
        let twice = headers(&[("x-forwarded-user", "ada"), ("x-forwarded-user", "eve")]);
        assert_eq!(proxy().named(PROXY, &twice), Named::Unreadable);
        assert_eq!(proxy().named(PROXY, &headers(&[("x-forwarded-user", "")])), Named::Unreadable);
    }
}
