//! Addresses: the service's, and those to listen on.

use crate::setting::InvalidValue;
use http::Uri;
use http::uri::Scheme;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The service's address: `http://host:port` or `https://host:port`.
pub(crate) fn upstream(text: &str) -> Result<Uri, InvalidValue> {
    const FORM: &str = "write the scheme, the host and the port: \"http://127.0.0.1:9000\"";
    let Some((scheme, rest)) = text.split_once("://") else {
        let problem = "the address of the service has no scheme";
        let looks_like_one =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@');
        return Err(match looks_like_one {
            true => InvalidValue::new(problem, format!("write \"http://{text}\"")),
            false => InvalidValue::new(problem, FORM),
        });
    };
    match scheme {
        "http" | "https" => {}
        other => {
            let problem = format!("`{other}` is not a scheme that the gateway can use for the service");
            return Err(InvalidValue::new(problem, FORM));
        }
    }
    if rest.contains('@') {
        let problem = "the address of the service has a user name or password, which would never be sent";
        return Err(InvalidValue::new(problem, FORM));
    }
    let uri: Uri =
        text.parse().map_err(|_| InvalidValue::new("this is not the address of a service", FORM))?;
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err(InvalidValue::new("the address of the service has no host", FORM));
    }
    if uri.port().is_some_and(|port| port.as_u16() == 0) {
        return Err(InvalidValue::new("port 0 is not valid", FORM));
    }
    // `Uri` takes "http://host:" and "http://host:99999" for hosts without a port.
    let after_host = uri.authority().map_or("", |authority| &authority.as_str()[host.len()..]);
    if !after_host.is_empty() && uri.port().is_none() {
        return Err(InvalidValue::new("the port of the service is not a number up to 65535", FORM));
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        let cure = "remove the path: requests keep the path that they came with";
        return Err(InvalidValue::new("the address of the service has a path", cure));
    }
    Ok(uri)
}

/// The port that the service is reached at, whether its address names it or not.
pub(crate) fn port_of(upstream: &Uri) -> u16 {
    let default = if upstream.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    upstream.port_u16().unwrap_or(default)
}

/// An address to listen on: `127.0.0.1:8080`.
pub(crate) fn listen(text: &str) -> Result<SocketAddr, InvalidValue> {
    const FORM: &str = "write an IP address and a port: \"127.0.0.1:8080\", \"0.0.0.0:8080\", \"[::1]:8080\"";
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let problem = format!("\"{text}\" is not an address to listen on");
    let plain = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    let meant = match plain.rsplit_once(':') {
        Some(("", port)) => format!("0.0.0.0:{port}"),
        Some(("localhost", port)) => format!("127.0.0.1:{port}"),
        Some(_) => plain.to_owned(),
        None => match (plain.parse::<u16>(), plain.parse::<IpAddr>()) {
            (Ok(port), _) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string(),
            (_, Ok(address)) => SocketAddr::from((address, 8080)).to_string(),
            _ => return Err(InvalidValue::new(problem, FORM)),
        },
    };
    Err(match meant.parse::<SocketAddr>() {
        Ok(meant) => InvalidValue::new(problem, format!("write \"{meant}\"")),
        Err(_) => InvalidValue::new(problem, FORM),
    })
}

/// Whether two listeners would want the same port.
pub(crate) fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (everywhere || one.ip() == other.ip())
}

/// Whether what is sent to `upstream` would come back to `listen`, as far as it can be told without a name lookup.
pub(crate) fn is_itself(upstream: &Uri, listen: SocketAddr) -> bool {
    let host = upstream.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let address = match host {
        "localhost" => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        host => host.parse().ok(),
    };
    let same_host = address.is_some_and(|address| {
        address == listen.ip()
            || (address.is_unspecified() || address.is_loopback()) && listen.ip().is_unspecified()
            || address.is_unspecified() && listen.ip().is_loopback()
    });
    same_host && port_of(upstream) == listen.port()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_by_scheme_host_and_port() {
        for right in
            ["http://127.0.0.1:9000", "http://localhost", "http://api.internal:80/", "http://[::1]:9000"]
        {
            assert_eq!(upstream(right).unwrap().scheme_str(), Some("http"), "{right}");
        }
        assert_eq!(upstream("https://api.internal").unwrap().scheme_str(), Some("https"));
        for (wrong, problem) in [
            ("127.0.0.1:9000", "the address of the service has no scheme"),
            ("", "the address of the service has no scheme"),
            ("ftp://api.internal", "`ftp` is not a scheme that the gateway can use for the service"),
            ("http://", "this is not the address of a service"),
            ("http://:9000", "the address of the service has no host"),
            ("http://host:", "the port of the service is not a number up to 65535"),
            ("http://host:99999", "the port of the service is not a number up to 65535"),
            ("http://host:0", "port 0 is not valid"),
            ("http://host/base", "the address of the service has a path"),
            ("http://host?x=1", "the address of the service has a path"),
        ] {
            assert_eq!(upstream(wrong).unwrap_err().problem, problem, "{wrong}");
        }
        assert!(upstream("http://me:pass@host").unwrap_err().problem.contains("password"));
        assert_eq!(upstream("127.0.0.1:9000").unwrap_err().cure, "write \"http://127.0.0.1:9000\"");
    }

    #[test]
    fn an_address_that_is_nearly_right_is_put_right() {
        assert_eq!(listen("[::]:8080").unwrap().port(), 8080);
        for (wrong, cure) in [
            (":8080", "write \"0.0.0.0:8080\""),
            ("localhost:8080", "write \"127.0.0.1:8080\""),
            ("8080", "write \"127.0.0.1:8080\""),
            ("10.0.0.1", "write \"10.0.0.1:8080\""),
            ("::1", "write an IP address and a port: \"127.0.0.1:8080\", \"0.0.0.0:8080\", \"[::1]:8080\""),
            ("http://127.0.0.1:8080/", "write \"127.0.0.1:8080\""),
        ] {
            assert_eq!(listen(wrong).unwrap_err().cure, cure, "{wrong}");
        }
    }

    #[test]
    fn listeners_that_want_one_port_and_a_gateway_before_itself_are_seen() {
        let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
        assert!(collide(at("127.0.0.1:80"), at("127.0.0.1:80")));
        assert!(collide(at("0.0.0.0:80"), at("127.0.0.1:80")));
        assert!(!collide(at("127.0.0.1:80"), at("127.0.0.2:80")));
        assert!(!collide(at("127.0.0.1:0"), at("127.0.0.1:0")));
        let itself = |from: &str, to: &str| is_itself(&upstream(from).unwrap(), at(to));
        assert!(itself("http://localhost:8080", "127.0.0.1:8080"));
        assert!(itself("http://127.0.0.1:8080", "0.0.0.0:8080"));
        assert!(itself("http://[::1]:8080", "[::]:8080"));
        assert!(!itself("http://127.0.0.1:9000", "127.0.0.1:8080"));
        assert!(!itself("http://api.internal:8080", "0.0.0.0:8080"));
    }
}
