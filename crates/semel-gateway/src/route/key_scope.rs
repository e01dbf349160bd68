//! Within what a client's key names one request, as the configuration says it.

use semel::KeyScope;
use semel_tower::{FormerName, ValidProtection};
use std::fmt;
use std::sync::Arc;

/// `key.scope`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RouteKeyScope {
    /// The operation: the same key may name a request of each one.
    #[default]
    Operation,
    /// The method and the concrete path: each is an operation of its own, whatever the route is called.
    Path,
    /// The tenant: one key names one request across all operations.
    Tenant,
}

impl RouteKeyScope {
    pub(crate) const ALL: [Self; 3] = [Self::Operation, Self::Path, Self::Tenant];

    /// Its name, as settings and the contract spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operation => "operation",
            Self::Path => "path",
            Self::Tenant => "tenant",
        }
    }

    /// The scope of the records.
    pub(crate) const fn of_records(self) -> KeyScope {
        match self {
            Self::Operation | Self::Path => KeyScope::Operation,
            Self::Tenant => KeyScope::Tenant,
        }
    }
}

impl fmt::Display for RouteKeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The scope of a route's keys, and the one that they had before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct KeyScopes {
    pub(crate) scope: RouteKeyScope,
    pub(crate) former: Option<RouteKeyScope>,
}

impl KeyScopes {
    /// Has an operation of this name protected so, whose keys may still be known under these names too.
    pub(crate) fn apply(
        self,
        protection: ValidProtection,
        operation: Option<&str>,
        mut formerly: Vec<FormerName>,
    ) -> ValidProtection {
        let Self { scope, former } = self;
        let former = former.filter(|former| *former != scope);
        if scope == RouteKeyScope::Path && former.is_some() {
            formerly.extend(operation.map(|name| FormerName::Name(Arc::from(name))));
        }
        if former == Some(RouteKeyScope::Path) {
            formerly.push(FormerName::MethodAndPath);
        }
        let former = former.map(RouteKeyScope::of_records).filter(|former| *former != scope.of_records());
        protection.with_key_scope(scope.of_records(), former).with_formerly(formerly)
    }
}
