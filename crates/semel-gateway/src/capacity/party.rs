//! Whom capacity is counted for.

use http::HeaderMap;
use http::header::FORWARDED;
use semel::headers::X_FORWARDED_FOR;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A client, as capacity is counted: an IPv4 address, or the /64 of an IPv6 address, which is what one connection to the Internet has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Party(IpAddr);

impl Party {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
            address => address,
        })
    }

    /// Whose request it is: the peer's own, or that of the client whom a trusted peer forwards it for.
    pub(crate) fn of_request(peer: IpAddr, headers: &HeaderMap, trusts: impl Fn(IpAddr) -> bool) -> Self {
        if !trusts(peer) {
            return Self::of(peer);
        }
        let mut client = peer;
        // The nearest proxy is the last in the list. What is to the left of a client that is not trusted is its own claim.
        for address in forwarded_for(headers) {
            let Some(address) = address else { break };
            client = address;
            if !trusts(address) {
                break;
            }
        }
        Self::of(client)
    }
}

/// The addresses that a request was forwarded for, the last one first; `None` for what is not an address.
fn forwarded_for(headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
    let older = headers.get_all(X_FORWARDED_FOR);
    let is_older = older.iter().next().is_some();
    let standard = headers.get_all(FORWARDED);
    let from_older = older.iter().rev().flat_map(elements).map(address);
    let from_standard = standard.iter().rev().flat_map(elements).map(|element| {
        let parameter = element?.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("for").then_some(value)
        });
        address(parameter)
    });
    from_older.chain(from_standard.filter(move |_| !is_older))
}

fn elements(value: &http::HeaderValue) -> impl Iterator<Item = Option<&str>> {
    value.as_bytes().rsplit(|&byte| byte == b',').map(|element| std::str::from_utf8(element).ok())
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`, `"[2001:db8::1]"`.
fn address(text: Option<&str>) -> Option<IpAddr> {
    let text = text?.trim().trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(text: &str) -> Party {
        Party::of(text.parse().unwrap())
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        assert_eq!(party("2001:db8::1"), party("2001:db8::ffff:1:2:3"));
        assert_ne!(party("2001:db8::1"), party("2001:db8:0:1::1"));
        assert_eq!(party("::ffff:192.0.2.1"), party("192.0.2.1"));
        assert_ne!(party("192.0.2.2"), party("192.0.2.1"));
    }

    #[test]
    fn a_trusted_peer_counts_as_the_client_whom_it_forwards_for() {
        let trusts = |address: IpAddr| address.to_string().starts_with("10.");
        for (peer, lines, client) in [
            ("192.0.2.1", &[("x-forwarded-for", "203.0.113.9")][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &[("x-forwarded-for", "203.0.113.9")], "203.0.113.9"),
            // What a client claims is to the left of what its proxy says of it.
            ("10.0.0.1", &[("x-forwarded-for", "198.51.100.1, 203.0.113.9")], "203.0.113.9"),
            (
                "10.0.0.1",
                &[("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.9:80")],
                "203.0.113.9",
            ),
            ("10.0.0.1", &[("x-forwarded-for", "203.0.113.9, 10.0.0.2")], "203.0.113.9"),
            ("10.0.0.1", &[("x-forwarded-for", "unknown, 10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[("x-forwarded-for", "unknown")], "10.0.0.1"),
            (
                "10.0.0.1",
                &[("forwarded", "for=198.51.100.1, for=\"[2001:db8::1]:80\";proto=https")],
                "2001:db8::1",
            ),
            (
                "10.0.0.1",
                &[("forwarded", "For=203.0.113.9"), ("x-forwarded-for", "203.0.113.8")],
                "203.0.113.8",
            ),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            assert_eq!(
                Party::of_request(peer.parse().unwrap(), &headers, trusts),
                party(client),
                "{peer} {lines:?}"
            );
        }
    }
}
