//! What is said of keys that a change of the configuration would orphan.

use semel::{KeyScope, StoreError};
use std::collections::BTreeMap;
use std::fmt;

/// No more operations are told of.
const TOLD: usize = 5;

/// How many live keys there are of an operation in a scope, 0 where that is not known, and which route would have to say so.
pub(super) type Orphans = BTreeMap<(String, KeyScope), (u64, Option<NewRoute>)>;

/// The route that gets the requests now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NewRoute {
    pub(super) pattern: String,
    /// The names under which it looks for keys.
    pub(super) names: Vec<String>,
    /// Whether it looks for keys by method and path.
    pub(super) by_path: bool,
    /// What its operation is called.
    pub(super) own: Option<String>,
}

/// Live keys that would not be found any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrphanedKeys {
    orphans: Orphans,
    /// How many records were looked at.
    newest: usize,
}

impl OrphanedKeys {
    pub(super) fn new(orphans: Orphans, newest: usize) -> Self {
        Self { orphans, newest }
    }
}

impl std::error::Error for OrphanedKeys {}

impl fmt::Display for OrphanedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("requests with live keys would execute again, because they would not be found any more")?;
        for ((operation, scope), (count, route)) in self.orphans.iter().take(TOLD) {
            match count {
                0 => write!(
                    f,
                    "; {operation} may have live keys (the newest {} records have none): ",
                    self.newest
                )?,
                1 => write!(f, "; {operation} has 1 live key: ")?,
                count => write!(f, "; {operation} has {count} live keys: ")?,
            }
            cure(f, operation, *scope, route.as_ref())?;
        }
        match self.orphans.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "; and {more} more operations"),
        }
    }
}

fn cure(
    f: &mut fmt::Formatter<'_>,
    operation: &str,
    scope: KeyScope,
    route: Option<&NewRoute>,
) -> fmt::Result {
    let Some(route) = route else {
        return match operation.contains(' ') || operation == "paths" {
            true => write!(f, "add former_scope = \"{scope}\" to [key]"),
            false => f.write_str("keep its route until they have expired"),
        };
    };
    let NewRoute { pattern, names, by_path, own } = route;
    let is_known = names.iter().any(|name| name == operation) || *by_path && operation.contains(' ');
    // It is called by its path now.
    let is_own = own.as_deref() == Some(operation);
    match is_known || is_own {
        true => write!(
            f,
            "add former_scope = \"{scope}\" to the [route.key] of the route \"{pattern}\", or to [key]"
        ),
        false => write!(f, "add formerly = [\"{operation}\"] to the route \"{pattern}\""),
    }
}

/// Why a configuration cannot come into force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationsError {
    /// Live keys would not be found any more.
    #[error(transparent)]
    Orphaned(#[from] OrphanedKeys),
    /// Whether that is so cannot be found out.
    #[error("cannot read from the store which operations there were: {0}")]
    Store(#[from] StoreError),
}
