//! The people and programs that use the admin API and the console: their names, roles and tenants.
//!
//! Everybody is authenticated in one place, [`Directory::authenticate`], whatever they ask for.

mod directory;
mod proxy;
mod role;
mod tenants;

pub use directory::{Caller, Directory, Rejected, User};
pub use proxy::{ProxyIdentity, ProxyRoles};
pub use role::Role;
pub use tenants::{TenantPattern, Tenants};

use std::fmt;

/// The name of a user with `[admin] token`.
pub const ADMIN: &str = "admin";

/// The longest name, in characters.
pub const LONGEST_NAME: usize = 100;

/// Whether a text can be the name of a user: visible, and not too long.
#[must_use]
pub fn is_name(text: &str) -> bool {
    !text.trim().is_empty()
        && text.trim() == text
        && text.chars().count() <= LONGEST_NAME
        && !text.chars().any(char::is_control)
}

/// Where a name comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Source {
    /// The token of `[admin]`.
    Token,
    /// The token of an `[[admin.user]]`.
    User,
    /// The header of an identity-aware proxy.
    Proxy,
    /// This machine, where no user is configured.
    Loopback,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Token, Self::User, Self::Proxy, Self::Loopback];

    /// Its name, as the API and the audit spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::User => "user",
            Self::Proxy => "proxy",
            Self::Loopback => "loopback",
        }
    }
}

/// An authenticated user, with role and tenants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Their name: `oncall`, `user@example.com`.
    pub name: String,
    /// Where the name comes from.
    pub source: Source,
    /// What they may do.
    pub role: Role,
    /// Whose operations they may see.
    pub tenants: Tenants,
}

impl Identity {
    /// Any user of this machine, where no user is configured: read-only.
    #[must_use]
    pub fn loopback() -> Self {
        Self { name: "loopback".into(), source: Source::Loopback, role: Role::Reader, tenants: Tenants::All }
    }
}

/// The identity as histories and the audit name it: `token:oncall`, `proxy:user@example.com`, `loopback`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Token | Source::User => write!(f, "token:{}", self.name),
            Source::Proxy => write!(f, "proxy:{}", self.name),
            Source::Loopback => f.write_str("loopback"),
        }
    }
}
