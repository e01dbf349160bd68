//! Where Redis is, as people write it.

use redis::{ConnectionInfo, IntoConnectionInfo as _};
use std::fmt;
use std::str::FromStr;

/// Where Redis is: one server, a Cluster, or whatever server Sentinels say is the primary. Shown without its password.
///
/// ```text
/// redis://[[user]:password@]host[:6379][/db]
/// redis+cluster://[[user]:password@]host1[:6379],host2…
/// redis+sentinel://[[user]:password@]host1[:26379],host2…/name[/db]
/// rediss://…  rediss+cluster://…  rediss+sentinel://…       over TLS
/// ```
#[derive(Clone)]
pub struct RedisUrl {
    pub(crate) form: Form,
    pub(crate) nodes: Vec<ConnectionInfo>,
    pub(crate) tls: bool,
    shown: String,
}

/// How the server is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Server,
    Cluster,
    /// By Sentinels, under this name.
    Sentinel(String),
}

/// Why a URL is not one of Redis. The text never repeats it: it may hold a password.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidUrl {
    /// It does not begin with a scheme that is known.
    #[error(
        "a Redis URL begins with redis://, redis+cluster:// or redis+sentinel://, or with rediss instead of redis for TLS"
    )]
    Scheme,
    /// There is no host.
    #[error("the URL names no host")]
    NoHost,
    /// One of the hosts cannot be read.
    #[error(
        "a host is written as name or name:port; several, with commas between them, only under redis+cluster:// and redis+sentinel://"
    )]
    Host,
    /// A Cluster has one database.
    #[error("a Cluster has one database: leave out what follows the hosts")]
    ClusterDatabase,
    /// Sentinels are asked for a server by its name.
    #[error(
        "after the Sentinels comes the name of the server that they watch: redis+sentinel://host1,host2/mymaster"
    )]
    NoName,
    /// The database is no number.
    #[error("the database is a number: redis://host/0")]
    Database,
    /// There is a query or a fragment.
    #[error(
        "nothing may follow a `?` or `#`: write those signs as %3F and %23 where they are part of a password"
    )]
    Query,
}

impl RedisUrl {
    /// Whether Redis is spoken with over TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.tls
    }
}

impl FromStr for RedisUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let (scheme, rest) = text.split_once("://").ok_or(InvalidUrl::Scheme)?;
        let (tls, form) = match scheme {
            "redis" => (false, Form::Server),
            "rediss" => (true, Form::Server),
            "redis+cluster" => (false, Form::Cluster),
            "rediss+cluster" => (true, Form::Cluster),
            "redis+sentinel" => (false, Form::Sentinel(String::new())),
            "rediss+sentinel" => (true, Form::Sentinel(String::new())),
            _ => return Err(InvalidUrl::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(InvalidUrl::Query);
        }
        // From the right: a password may hold characters that should have been encoded.
        let (login, place) = rest.rsplit_once('@').map_or(("", rest), |(login, place)| (login, place));
        let (hosts, path) = place.split_once('/').map_or((place, ""), |(hosts, path)| (hosts, path));
        let (form, database, port) = match form {
            Form::Server => (Form::Server, path, 6379),
            Form::Cluster if path.is_empty() => (Form::Cluster, "", 6379),
            Form::Cluster => return Err(InvalidUrl::ClusterDatabase),
            Form::Sentinel(_) => {
                let (name, database) = path.split_once('/').unwrap_or((path, ""));
                if name.is_empty() {
                    return Err(InvalidUrl::NoName);
                }
                (Form::Sentinel(name.to_owned()), database, 26379)
            }
        };
        if !database.is_empty() && database.parse::<u32>().is_err() {
            return Err(InvalidUrl::Database);
        }
        if hosts.is_empty() {
            return Err(InvalidUrl::NoHost);
        }
        let one = if tls { "rediss" } else { "redis" };
        let at = if login.is_empty() { "" } else { "@" };
        let nodes = hosts.split(',').map(|host| {
            if host.is_empty() || host.chars().any(|sign| sign.is_whitespace() || sign.is_control()) {
                return Err(InvalidUrl::Host);
            }
            // `[::1]` has colons of its own.
            let has_port = host.rsplit_once(':').is_some_and(|(_, after)| !after.contains(']'));
            let port = if has_port { String::new() } else { format!(":{port}") };
            let url = format!("{one}://{login}{at}{host}{port}/{database}");
            url.as_str().into_connection_info().map_err(|_| InvalidUrl::Host)
        });
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        if form == Form::Server && nodes.len() > 1 {
            return Err(InvalidUrl::Host);
        }
        let user = login.split(':').next().unwrap_or_default();
        let at = if user.is_empty() { "" } else { "@" };
        Ok(Self { form, nodes, tls, shown: format!("{scheme}://{user}{at}{place}") })
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl PartialEq for RedisUrl {
    fn eq(&self, other: &Self) -> bool {
        let login = |url: &Self| {
            let login = url.nodes.first().map(ConnectionInfo::redis_settings);
            login.map(|login| (login.username().map(str::to_owned), login.password().map(str::to_owned)))
        };
        self.shown == other.shown && login(self) == login(other)
    }
}

impl Eq for RedisUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RedisUrl {
        text.parse().unwrap()
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(parsed("redis://localhost").form, Form::Server);
        assert_eq!(parsed("redis+cluster://a,b:7000,[::1]:7001").nodes.len(), 3);
        let sentinels = parsed("redis+sentinel://a,b/mymaster/2");
        assert_eq!(sentinels.form, Form::Sentinel("mymaster".into()));
        assert_eq!(sentinels.nodes[0].addr().to_string(), "a:26379");
        assert_eq!(sentinels.nodes[0].redis_settings().db(), 2);
        assert!(parsed("rediss://cache.internal:6380/1").tls);
        let login = parsed("redis://app:p%40ss@10.0.0.5");
        assert_eq!(login.nodes[0].redis_settings().username(), Some("app"));
        assert_eq!(login.nodes[0].redis_settings().password(), Some("p@ss"));
        assert_eq!(login.nodes[0].addr().to_string(), "10.0.0.5:6379");
    }

    #[test]
    fn what_is_none_is_refused_with_what_to_write() {
        for (text, why) in [
            ("localhost:6379", InvalidUrl::Scheme),
            ("http://localhost", InvalidUrl::Scheme),
            ("redis://", InvalidUrl::NoHost),
            ("redis://a,b", InvalidUrl::Host),
            ("redis://a b", InvalidUrl::Host),
            ("redis://a:port", InvalidUrl::Host),
            ("redis+cluster://a,,b", InvalidUrl::Host),
            ("redis+cluster://a/1", InvalidUrl::ClusterDatabase),
            ("redis+sentinel://a,b", InvalidUrl::NoName),
            ("redis://a/one", InvalidUrl::Database),
            ("redis://a?protocol=resp3", InvalidUrl::Query),
        ] {
            assert_eq!(text.parse::<RedisUrl>().unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for text in ["redis://app:s3cret@host", "redis://:s3cret@host/1", "redis+cluster://a:s3cret@b,c"] {
            let shown = format!("{0} {0:?}", parsed(text));
            assert!(!shown.contains("s3cret"), "{shown}");
        }
        assert_ne!(parsed("redis://app:one@host"), parsed("redis://app:two@host"));
    }
}
