//! A gateway from a few flags, without a file.

use super::address::{listen, upstream};
use super::listeners::{Whose, check};
use super::{AdminConfig, Config};
use crate::identity::Directory;
use crate::route::Routes;
use crate::secret::Secret;
use crate::setting::InvalidValue;
use crate::store::StoreUrl;
use std::fmt;

/// What `semel gateway` takes on the command line.
#[derive(Clone)]
pub struct QuickStart {
    /// `--upstream`.
    pub upstream: String,
    /// `--listen`.
    pub listen: String,
    /// `--admin-listen`.
    pub admin_listen: String,
    /// `--store`.
    pub store: String,
    /// `--require-key`.
    pub require_key: bool,
    /// `--admin-token`: the token, or where it is.
    pub admin_token: Option<String>,
}

impl QuickStart {
    /// The defaults, before a service.
    pub fn before(upstream: impl Into<String>) -> Self {
        Self {
            upstream: upstream.into(),
            listen: super::DEFAULT_LISTEN.to_string(),
            admin_listen: super::DEFAULT_ADMIN_LISTEN.to_string(),
            store: StoreUrl::default().to_string(),
            require_key: false,
            admin_token: None,
        }
    }
}

/// Everything that is wrong with the flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuickStartErrors(Vec<(&'static str, InvalidValue)>);

impl std::error::Error for QuickStartErrors {}

impl fmt::Display for QuickStartErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (flag, wrong)) in self.0.iter().enumerate() {
            let separator = if number > 0 { "\n" } else { "" };
            write!(f, "{separator}{flag}: {wrong}")?;
        }
        Ok(())
    }
}

impl Config {
    /// A gateway from a few flags: every POST and PATCH with a key is protected.
    ///
    /// # Errors
    /// What is wrong with the flags, and what would be right.
    pub fn from_flags(flags: &QuickStart) -> Result<Self, QuickStartErrors> {
        let mut wrong = Vec::new();
        let service = keep(&mut wrong, "--upstream", upstream(&flags.upstream));
        let public = keep(&mut wrong, "--listen", listen(&flags.listen));
        let admin = keep(&mut wrong, "--admin-listen", listen(&flags.admin_listen));
        let store = flags.store.parse::<StoreUrl>();
        let store = keep(
            &mut wrong,
            "--store",
            store.map_err(|error| InvalidValue::new("invalid store URL", error.to_string())),
        );
        let token = flags.admin_token.as_deref().map(admin_token);
        let is_guarded = token.is_some();
        let token = token.and_then(|token| keep(&mut wrong, "--admin-token", token));
        if let (Some(public), Some(admin)) = (public, admin) {
            wrong.extend(check(service.as_ref(), public, admin, is_guarded).into_iter().map(
                |(whose, wrong)| match whose {
                    Whose::Upstream => ("--upstream", wrong),
                    Whose::AdminListen => ("--admin-listen", wrong),
                },
            ));
        }
        match (service, public, admin, store) {
            (Some(service), Some(public), Some(admin), Some(store)) if wrong.is_empty() => Ok(Self {
                listen: public,
                store,
                admin: AdminConfig {
                    listen: admin,
                    people: Directory { token, ..Directory::default() },
                    tls: None,
                },
                routes: Routes::unconfigured(flags.require_key),
                ..Self::before(service)
            }),
            _ => Err(QuickStartErrors(wrong)),
        }
    }
}

fn admin_token(text: &str) -> Result<Secret, InvalidValue> {
    let cure = "write \"env:NAME\" for the value of the environment variable NAME, or the token itself";
    Secret::read(text, &|name| std::env::var(name))
        .map_err(|error| InvalidValue::new(error.to_string(), cure))
}

fn keep<T>(
    wrong: &mut Vec<(&'static str, InvalidValue)>,
    flag: &'static str,
    parsed: Result<T, InvalidValue>,
) -> Option<T> {
    parsed.map_err(|error| wrong.push((flag, error))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_is_enough() {
        let config = Config::from_flags(&QuickStart::before("http://localhost:3000")).unwrap();
        assert_eq!(config.upstream, "http://localhost:3000");
        assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(config.admin.listen.to_string(), "127.0.0.1:8081");
        assert_eq!(config.store.to_string(), "sqlite:semel.db");
        assert!(config.routes.for_all().is_some());
    }

    #[test]
    fn every_wrong_flag_is_named() {
        let flags = QuickStart {
            listen: "8080".into(),
            admin_listen: "0.0.0.0:8081".into(),
            store: "redis://x".into(),
            ..QuickStart::before("localhost:3000")
        };
        let told = Config::from_flags(&flags).unwrap_err().to_string();
        assert_eq!(
            told,
            "--upstream: the address of the service has no scheme: write \"http://localhost:3000\"\n\
             --listen: \"8080\" is not an address to listen on: write \"127.0.0.1:8080\"\n\
             --store: invalid store URL: Redis is no store, for it may forget: use \"sqlite:semel.db\" or \"postgres://user@host/database\", \
             and put Redis in front with [cache] url"
        );
        let open =
            QuickStart { admin_listen: "0.0.0.0:8081".into(), ..QuickStart::before("http://localhost:3000") };
        assert!(
            Config::from_flags(&open)
                .unwrap_err()
                .to_string()
                .starts_with("--admin-listen: the admin API would be open")
        );
    }
}
