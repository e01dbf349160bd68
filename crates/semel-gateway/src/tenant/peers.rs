//! Who is believed: addresses and networks of peers.

use crate::setting::InvalidValue;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network of addresses, or one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    /// The networks of this machine alone.
    pub const LOOPBACK: [Self; 2] = [
        Self { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), prefix: 8 },
        Self { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 },
    ];

    /// The network that a text tells: `10.0.0.0/8`, `fd00::/8`, `192.0.2.7`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        const FORM: &str =
            "write an address or a network: \"10.1.2.3\", \"10.0.0.0/8\", \"::1\", \"fd00::/8\"";
        let not_one =
            || InvalidValue::new(format!("\"{text}\" is neither an IP address nor a network"), FORM);
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| not_one())?;
        let prefix = match prefix {
            None => width(address),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| not_one())?
            }
            Some(_) => return Err(not_one()),
        };
        if prefix > width(address) {
            let problem = format!("\"{text}\" has a prefix longer than an address");
            return Err(InvalidValue::new(
                problem,
                format!("write a number up to {} after the slash", width(address)),
            ));
        }
        if prefix == 0 {
            let problem = format!("\"{text}\" is every address: any caller could claim to be any tenant");
            return Err(InvalidValue::new(
                problem,
                "name the addresses of the proxies in front of the gateway",
            ));
        }
        let network = Self { address, prefix };
        let first = network.first();
        if first != address {
            let problem = format!("\"{text}\" has bits set beyond its first {prefix}");
            return Err(InvalidValue::new(
                problem,
                format!("write \"{first}/{prefix}\", or \"{address}\" for a single address"),
            ));
        }
        Ok(network.canonical())
    }

    /// Whether an address is in it. An IPv4 address is itself, mapped into IPv6 or not.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(address) == width(self.address) && Self { address, prefix: self.prefix }.first() == self.address
    }

    /// The first address.
    fn first(self) -> IpAddr {
        let host_bits = width(self.address) - self.prefix;
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        }
    }

    /// A network within `::ffff:0:0/96` is one of IPv4.
    fn canonical(self) -> Self {
        match self.address {
            IpAddr::V6(address) if self.prefix >= 96 => match address.to_ipv4_mapped() {
                Some(address) => Self { address: IpAddr::V4(address), prefix: self.prefix - 96 },
                None => self,
            },
            _ => self,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == width(self.address) {
            write!(f, "{}", self.address)
        } else {
            write!(f, "{}/{}", self.address, self.prefix)
        }
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(address: &str, network: &str) -> bool {
        Network::parse(network).unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn an_address_is_in_its_network_and_in_no_other() {
        for (address, network, inside) in [
            ("127.0.0.1", "127.0.0.0/8", true),
            ("127.255.255.255", "127.0.0.0/8", true),
            ("128.0.0.0", "127.0.0.0/8", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.4", "10.1.2.3", false),
            ("10.1.2.4", "10.1.2.4/31", true),
            ("::1", "::1", true),
            ("::2", "::1", false),
            ("fd00::1", "fd00::/8", true),
            ("fe00::1", "fd00::/8", false),
            // Mapped into IPv6, on either side.
            ("::ffff:127.0.0.1", "127.0.0.0/8", true),
            ("::ffff:10.0.0.1", "127.0.0.0/8", false),
            ("10.0.0.1", "::ffff:10.0.0.0/104", true),
            ("11.0.0.1", "::ffff:10.0.0.0/104", false),
            // The same bits in another family are another address.
            ("::7f00:1", "127.0.0.0/8", false),
            ("127.0.0.1", "::/1", false),
        ] {
            assert_eq!(is_in(address, network), inside, "{address} in {network}");
        }
        assert!(Network::LOOPBACK[0].contains(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert!(Network::LOOPBACK[1].contains(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    }

    #[test]
    fn what_is_no_network_is_put_right() {
        for (text, problem, cure) in [
            ("localhost", "neither", "127"),
            ("10.0.0.0/", "neither", ""),
            ("10.0.0.0/+8", "neither", ""),
            ("10.0.0.0/8/8", "neither", ""),
            ("10.0.0.0/33", "longer than an address", "up to 32"),
            ("::1/129", "longer than an address", "up to 128"),
            ("10.1.2.3/8", "beyond its first 8", "\"10.0.0.0/8\", or \"10.1.2.3\""),
            ("0.0.0.0/0", "every address", "proxies"),
            ("::/0", "every address", "proxies"),
        ] {
            let wrong = Network::parse(text).unwrap_err();
            assert!(wrong.problem.contains(problem), "{text}: {wrong}");
            assert!(wrong.cure.contains(cure) || cure == "127", "{text}: {wrong}");
        }
    }
}
