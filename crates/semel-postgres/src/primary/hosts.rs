//! The servers that a URL names: `postgres://user@h1,h2:5433,h3/db`.

use crate::error::OpenError;
use sqlx::postgres::PgConnectOptions;
use std::str::FromStr;

/// The servers in the order of the URL, as the driver takes them.
pub(crate) fn addresses(url: &str) -> Result<Vec<PgConnectOptions>, OpenError> {
    let parse = |url: &str| PgConnectOptions::from_str(url).map_err(OpenError::Url);
    let Some(parts) = Parts::of(url) else { return Ok(vec![parse(url)?]) };
    let hosts = parts.hosts.split(',');
    hosts.map(|host| parse(&format!("{}{host}{}", parts.before, parts.after))).collect()
}

/// A URL with several hosts, cut before and after them.
struct Parts<'a> {
    before: &'a str,
    hosts: &'a str,
    after: &'a str,
}

impl<'a> Parts<'a> {
    /// `None` for a single host.
    fn of(url: &'a str) -> Option<Self> {
        let authority = url.find("://")? + 3;
        let path = url[authority..].find(['/', '?']).map_or(url.len(), |at| authority + at);
        // A user or password may have a comma in it.
        let hosts = url[authority..path].rfind('@').map_or(authority, |at| authority + at + 1);
        let parts = Self { before: &url[..hosts], hosts: &url[hosts..path], after: &url[path..] };
        parts.hosts.contains(',').then_some(parts)
    }
}

/// Where a server is, without user and password.
pub(crate) fn shown(address: &PgConnectOptions) -> String {
    let (host, port) = (address.get_host(), address.get_port());
    match address.get_socket() {
        Some(directory) => format!("{}/.s.PGSQL.{port}", directory.display()),
        None if host.starts_with('/') => format!("{host}/.s.PGSQL.{port}"),
        None if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{port}"),
        None => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Vec<String> {
        addresses(url).unwrap().iter().map(shown).collect()
    }

    #[test]
    fn a_url_names_one_server_or_several() {
        assert_eq!(hosts("postgres://app@h1/db"), ["h1:5432"]);
        assert_eq!(hosts("postgres://app@h1,h2:5433,h3/db"), ["h1:5432", "h2:5433", "h3:5432"]);
        assert_eq!(hosts("postgresql://h1,[::1]:5433?sslmode=disable"), ["h1:5432", "[::1]:5433"]);
    }

    #[test]
    fn every_server_gets_the_same_user_password_and_database() {
        for address in addresses("postgres://a%2Cpp:s,3@h1:1,h2:2/payments?application_name=shop").unwrap() {
            assert_eq!(address.get_username(), "a,pp");
            assert_eq!(address.get_database(), Some("payments"));
            assert_eq!(address.get_application_name(), Some("shop"));
        }
    }

    #[test]
    fn a_host_that_is_missing_or_has_a_bad_port_is_refused() {
        for url in ["postgres://h1:x,h2/db", "postgres://h1,h2:99999/db"] {
            assert!(matches!(addresses(url), Err(OpenError::Url(_))), "{url}");
        }
    }
}
