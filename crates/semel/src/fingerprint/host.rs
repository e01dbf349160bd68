//! The host that a request was addressed to: names as one where they are one.

use super::parts::Parts;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What all names of this machine are called.
const LOOPBACK: &[u8] = b"localhost";

/// Which names are another one's, in lower case.
pub(super) type Aliases = BTreeMap<Vec<u8>, Vec<u8>>;

/// Adds the host. No host is not an empty one; a list (as proxies append to each other) is as many as it has.
pub(super) fn add(parts: &mut Parts, aliases: &Aliases, host: Option<&[u8]>) {
    let Some(host) = host else { return parts.count(0) };
    parts.count(host.split(is_comma).count());
    for host in host.split(is_comma) {
        let name = name_of(host);
        parts.piece(aliases.get(&*name).map_or(&*name, Vec::as_slice));
    }
}

fn is_comma(byte: &u8) -> bool {
    *byte == b','
}

/// The name, in lower case and without the port; names and addresses of this machine are one.
fn name_of(host: &[u8]) -> Cow<'_, [u8]> {
    let host = host.trim_ascii();
    let name = match host.iter().rposition(|byte| *byte == b':') {
        // Not within an IPv6 address, which is in brackets, or should be.
        Some(colon)
            if host[colon + 1..].iter().all(u8::is_ascii_digit)
                && (host[..colon].ends_with(b"]") || !host[..colon].contains(&b':')) =>
        {
            &host[..colon]
        }
        _ => host,
    };
    if is_loopback(name) {
        return Cow::Borrowed(LOOPBACK);
    }
    match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

fn is_loopback(name: &[u8]) -> bool {
    let address = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    // No other name need be read as an address.
    let may_be_one = address.is_some() || name.starts_with(b"127.");
    let parsed = |name: &[u8]| std::str::from_utf8(name).ok()?.parse::<IpAddr>().ok();
    name.eq_ignore_ascii_case(LOOPBACK)
        || (may_be_one
            && parsed(address.unwrap_or(name)).is_some_and(|address| address.to_canonical().is_loopback()))
}

/// The names in lower case and without ports, each in one group; or the one that is no host, or is in two.
pub(super) fn normal(groups: &BTreeSet<BTreeSet<String>>) -> Result<BTreeSet<BTreeSet<String>>, WrongName> {
    let mut seen = BTreeSet::new();
    let mut normal = BTreeSet::new();
    for group in groups {
        let mut names = BTreeSet::new();
        for name in group {
            let fit = |byte: u8| byte.is_ascii_graphic() && !b",/\\\"@?#".contains(&byte);
            let host = name_of(name.as_bytes());
            if host.is_empty() || !name.bytes().all(fit) {
                return Err(WrongName::NoHost(name.clone()));
            }
            // It is ASCII.
            names.insert(String::from_utf8_lossy(&host).into_owned());
        }
        for name in &names {
            if !seen.insert(name.clone()) {
                return Err(WrongName::Twice(name.clone()));
            }
        }
        normal.insert(names);
    }
    Ok(normal)
}

/// What is wrong with a name among aliases.
pub(super) enum WrongName {
    NoHost(String),
    Twice(String),
}

/// Each name but the first of its group, with that one.
pub(super) fn aliases(groups: &BTreeSet<BTreeSet<String>>) -> Aliases {
    let mut aliases = Aliases::new();
    for group in groups {
        let mut names = group.iter();
        let Some(first) = names.next() else { continue };
        aliases.extend(names.map(|name| (name.clone().into_bytes(), first.clone().into_bytes())));
    }
    aliases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(host: Option<&str>, groups: &[&[&str]]) -> [u8; 32] {
        let groups = groups.iter().map(|group| group.iter().map(|name| (*name).to_owned()).collect());
        let groups = normal(&groups.collect()).ok().unwrap();
        let mut parts = Parts::new("test", None);
        add(&mut parts, &aliases(&groups), host.map(str::as_bytes));
        parts.finish()
    }

    #[test]
    fn case_and_port_do_not_count_and_all_else_does() {
        let one = |host| hash(Some(host), &[]);
        for same in ["Shop.Example", "shop.example:", "shop.example:8443", " shop.example "] {
            assert_eq!(one(same), one("shop.example"), "{same}");
        }
        for other in ["shop.example.", "shop.example2", "shop", "", "shop.example:x", "shop.example,"] {
            assert_ne!(one(other), one("shop.example"), "{other}");
        }
        assert_ne!(hash(None, &[]), one(""));
        assert_eq!(one("[2001:DB8::1]:80"), one("[2001:db8::1]"));
        assert_ne!(one("[2001:db8::1]"), one("[2001:db8::2]"));
        assert_ne!(one("2001:db8::1"), one("2001:db8::2"), "not even where it is written wrongly");
        assert_ne!(one("a,b"), one("b,a"));
        assert_eq!(one("a:80, B"), one("A,b:81"));
    }

    #[test]
    fn names_of_this_machine_are_one() {
        let one = |host| hash(Some(host), &[]);
        for same in [
            "localhost",
            "LocalHost:1",
            "127.0.0.1:1",
            "127.255.0.9",
            "[::1]",
            "[0::1]:5",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(one(same), one("localhost"), "{same}");
        }
        for other in ["x.localhost", "127.example", "127.0.0.256", "::1", "[::2]", "[localhost]", "0.0.0.0"] {
            assert_ne!(one(other), one("localhost"), "{other}");
        }
    }

    #[test]
    fn aliases_are_one_host_and_nobody_is_in_two_groups() {
        let groups: &[&[&str]] = &[&["b.example", "A.Example:80"], &["127.0.0.1", "dev.example"]];
        let one = |host| hash(Some(host), groups);
        assert_eq!(one("a.example"), one("b.example:8080"));
        assert_eq!(one("dev.example"), one("localhost"));
        assert_ne!(one("a.example"), one("localhost"));
        assert_ne!(one("c.example"), one("a.example"));
        let wrong = |group: &[&str]| {
            let group = group.iter().map(|name| (*name).to_owned()).collect();
            let others = BTreeSet::from(["a".to_owned()]);
            normal(&BTreeSet::from([others, group])).is_err()
        };
        assert!(wrong(&["b", "A:80"]) && wrong(&[""]) && wrong(&[":80"]) && wrong(&["b c"]));
        assert!(wrong(&["http://b"]) && wrong(&["b,c"]) && !wrong(&["b", "c"]));
    }
}
