//! What is kept of a configuration: by which names and in which scopes records are found.

use crate::route::{ForAll, Overlap, Pattern, Route, Routes};
use bytes::Bytes;
use semel::{KeyScope, Timestamp};
use semel_tower::{FormerName, Protection};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stands for all operations that are called by a method and a path.
pub(super) const PATHS: &str = "METHOD /path";

/// Which operations there are, as far as it decides which record a request finds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    /// Every POST and PATCH, by method and path.
    for_all: bool,
    /// The scope of their keys, today's first.
    #[serde(default)]
    for_all_scopes: Scopes,
    #[serde(default)]
    for_all_retention: Option<i64>,
    pub(super) routes: Vec<Place>,
    /// Of what is looked for and not made any more: when the last key is over, in milliseconds, but for what is unfinished. By scope and name.
    #[serde(default)]
    retired: BTreeMap<String, i64>,
}

/// A route, and the names under which its requests are looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    pub(super) pattern: String,
    /// Today's and former ones; today's first, unless it is called by its path.
    pub(super) names: Vec<String>,
    /// Also, or alone, by method and path.
    by_path: bool,
    /// New records are called by method and path.
    #[serde(default)]
    made_by_path: bool,
    /// The scope of its keys, today's first.
    #[serde(default)]
    scopes: Scopes,
    /// How long keys live, in milliseconds.
    #[serde(default)]
    retention: Option<i64>,
}

/// The names of scopes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Scopes(Vec<String>);

impl Default for Scopes {
    /// What there was before there were others.
    fn default() -> Self {
        Self(vec![KeyScope::Operation.as_str().to_owned()])
    }
}

impl Scopes {
    fn of(protection: &Protection) -> Self {
        let scopes = [Some(protection.key_scope), protection.former_key_scope].into_iter().flatten();
        Self(scopes.map(|scope| scope.as_str().to_owned()).collect())
    }

    fn iter(&self) -> impl Iterator<Item = KeyScope> {
        self.0.iter().filter_map(|name| KeyScope::ALL.into_iter().find(|scope| scope.as_str() == name))
    }
}

impl Place {
    pub(super) fn scopes(&self) -> impl Iterator<Item = KeyScope> {
        self.scopes.iter()
    }

    /// What new records are called, and in which scope.
    fn made(&self) -> Option<(&str, KeyScope)> {
        let name = if self.made_by_path { PATHS } else { self.names.first()? };
        Some((name, self.scopes().next()?))
    }
}

impl Layout {
    pub(super) fn of(routes: &Routes) -> Self {
        let told = |route: &Route| {
            let found = Found::of(route);
            Place {
                pattern: route.pattern.to_string(),
                names: found.names(),
                by_path: found.by_path,
                made_by_path: route.is_by_path(),
                scopes: Scopes::of(&route.protection),
                retention: retention(&route.protection),
            }
        };
        let for_all = routes.for_all();
        Self {
            for_all: for_all.is_some(),
            for_all_scopes: for_all.map(|rules| Scopes::of(&rules.protection)).unwrap_or_default(),
            for_all_retention: for_all.and_then(|rules| retention(&rules.protection)),
            routes: routes.routes().iter().map(told).collect(),
            retired: BTreeMap::new(),
        }
    }

    /// Whether both find the same records for as long.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        let without = |layout: &Self| Self { retired: BTreeMap::new(), ..layout.clone() };
        without(self) == without(other)
    }

    pub(super) fn to_text(&self) -> Bytes {
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// The scopes in which records are called by method and path.
    pub(super) fn scopes_of_paths(&self) -> Vec<KeyScope> {
        let for_all = self.for_all_scopes.iter().filter(|_| self.for_all);
        let by_path = self.routes.iter().filter(|place| place.by_path || place.made_by_path);
        let mut scopes: Vec<KeyScope> = for_all.chain(by_path.flat_map(Place::scopes)).collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    /// Whether some request of a pattern was called by its method and path.
    pub(super) fn called_by_path(&self, pattern: &Pattern) -> bool {
        if let Some(same) = self.routes.iter().find(|place| place.pattern == pattern.as_str()) {
            return same.by_path || same.made_by_path;
        }
        let overlaps = |place: &Place| {
            Pattern::parse(&place.pattern).is_ok_and(|other| other.overlap(pattern) != Overlap::Apart)
        };
        self.for_all
            || self.routes.iter().any(|place| (place.by_path || place.made_by_path) && overlaps(place))
    }

    /// Whether the last key of a name was over by then, but for what is unfinished.
    pub(super) fn is_over(&self, operation: &str, scope: KeyScope, now: Timestamp) -> bool {
        self.retired.get(&retired_name(operation, scope)).is_some_and(|over| *over <= now.as_millis())
    }

    /// Says of what is looked for and not made any more when it is over, where `before` was in force until now.
    pub(super) fn retire(&mut self, before: &Self, now: Timestamp) {
        for place in &mut self.routes {
            // What was made under a longer one lives as long.
            let same = before.routes.iter().find(|other| other.pattern == place.pattern);
            place.retention = place.retention.max(same.and_then(|same| same.retention));
        }
        self.for_all_retention = self.for_all_retention.max(before.for_all_retention);
        let made: Vec<_> = self.made();
        let longest = before.routes.iter().map(|place| place.retention);
        let longest = longest.chain(before.for_all.then_some(before.for_all_retention));
        // Where one is not known, nothing is known of all.
        let longest = longest.reduce(|one, other| Some(one?.max(other?))).flatten();
        let mut retired = BTreeMap::new();
        for (operation, scope) in self.found() {
            let name = retired_name(&operation, scope);
            if made.contains(&(operation, scope)) {
                continue;
            }
            let over = longest.map(|longest| now.as_millis().saturating_add(longest));
            if let Some(over) = before.retired.get(&name).copied().or(over) {
                retired.insert(name, over);
            }
        }
        self.retired = retired;
    }

    /// What new records are called.
    fn made(&self) -> Vec<(String, KeyScope)> {
        let for_all = self.for_all_scopes.iter().next().filter(|_| self.for_all).map(|scope| (PATHS, scope));
        let made = self.routes.iter().filter_map(Place::made).chain(for_all);
        made.map(|(name, scope)| (name.to_owned(), scope)).collect()
    }

    /// What records are looked for by.
    fn found(&self) -> Vec<(String, KeyScope)> {
        let mut found = Vec::new();
        for place in &self.routes {
            let by_path = (place.by_path || place.made_by_path).then(|| PATHS.to_owned());
            for name in place.names.iter().cloned().chain(by_path) {
                found.extend(place.scopes().map(|scope| (name.clone(), scope)));
            }
        }
        if self.for_all {
            found.extend(self.for_all_scopes.iter().map(|scope| (PATHS.to_owned(), scope)));
        }
        found
    }
}

fn retired_name(operation: &str, scope: KeyScope) -> String {
    format!("{scope} {operation}")
}

fn retention(protection: &Protection) -> Option<i64> {
    i64::try_from(protection.policy.retention.as_millis()).ok()
}

/// Which records the requests of a route find.
pub(super) struct Found<'r> {
    protection: &'r Protection,
    /// What new records are called, unless it is their path.
    own: Option<&'r str>,
    by_path: bool,
    /// The one path that there is.
    exact: Option<&'r str>,
}

impl<'r> Found<'r> {
    pub(super) fn of(route: &'r Route) -> Self {
        Self {
            protection: &route.protection,
            own: route.operation.as_deref().filter(|_| !route.is_by_path()),
            by_path: route.is_by_path() || route.protection.formerly.contains(&FormerName::MethodAndPath),
            exact: route.pattern.is_exact().then(|| route.pattern.as_str()),
        }
    }

    pub(super) fn by(rules: &'r ForAll) -> Self {
        Self { protection: &rules.protection, own: None, by_path: true, exact: None }
    }

    /// The names by which they are called, today's first.
    pub(super) fn names(&self) -> Vec<String> {
        let former = self.protection.formerly.iter().filter_map(|former| match former {
            FormerName::Name(name) => Some(&**name),
            FormerName::MethodAndPath => None,
        });
        self.own.into_iter().chain(former).map(str::to_owned).collect()
    }

    pub(super) fn is_by_path(&self) -> bool {
        self.by_path
    }

    /// Whether a record of this operation and scope is found.
    pub(super) fn finds(&self, operation: &str, scope: KeyScope) -> bool {
        let is_named =
            self.by_path && operation.contains(' ') || self.names().iter().any(|name| name == operation);
        is_named && self.is_in(scope)
    }

    /// Whether all records are found that are called by paths.
    pub(super) fn finds_paths(&self, scope: KeyScope) -> bool {
        let is_exact = self.exact.is_some_and(|exact| self.names().iter().any(|name| name == exact));
        (self.by_path || is_exact) && self.is_in(scope)
    }

    fn is_in(&self, scope: KeyScope) -> bool {
        self.protection.key_scope == scope || self.protection.former_key_scope == Some(scope)
    }
}
