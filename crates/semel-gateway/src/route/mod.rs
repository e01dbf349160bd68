//! Which requests are protected, and how.
//!
//! - `pattern.rs`: the requests of one route;
//! - `path_aliases.rs`: the ways in which one path can be spelt;
//! - `ambiguous.rs`: requests that a service may take for others than they look like.

mod ambiguous;
mod fingerprint;
mod path_aliases;
mod pattern;
mod reconcile;

pub use ambiguous::AmbiguousRequest;
pub use fingerprint::{FingerprintConfig, HostRule};
pub(crate) use path_aliases::{Illegible, legible};
pub(crate) use pattern::Overlap;
pub use pattern::Pattern;
pub use reconcile::{PollUrl, ReconcileConfig};

use http::request::Parts;
use http::{HeaderName, Method};
use semel::Policy;
use semel::fingerprint::Recipe;
use semel_tower::{KeyRequirement, Protected, Protection, ValidProtection};
use std::collections::HashMap;
use std::sync::Arc;

/// One operation that is protected.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name.
    pub operation: String,
    /// Which requests it is.
    pub pattern: Pattern,
    /// How it is protected.
    pub protection: ValidProtection,
    /// The headers that are kept for retries besides the usual ones.
    pub keep_headers: Vec<HeaderName>,
    /// What counts as the same request; the protection's recipe is made of it.
    pub fingerprint: FingerprintConfig,
    /// How doubt about it is settled by asking, if it is.
    pub reconcile: Option<ReconcileConfig>,
}

/// Which requests are protected: those of the declared routes, or every POST and PATCH with a key.
#[derive(Clone, Debug)]
pub struct Routes(RouteSet);

#[derive(Clone, Debug)]
enum RouteSet {
    Unconfigured(ValidProtection),
    Declared(Arc<Declared>),
}

#[derive(Debug)]
struct Declared {
    routes: Vec<Route>,
    post: ByPath,
    patch: ByPath,
    /// Some path has capital letters, so that a request without any may mean it.
    upper_case: bool,
}

/// The routes of one method, by their places in the list.
#[derive(Debug, Default)]
struct ByPath {
    exact: HashMap<String, usize>,
    /// The more exact first.
    open: Vec<usize>,
}

/// The label under which metrics count what no route declares.
pub const UNCONFIGURED: &str = "unconfigured";

impl Routes {
    /// Every POST and PATCH that brings a key. Without one it passes, unless `require_key`.
    #[must_use]
    pub fn unconfigured(require_key: bool) -> Self {
        // Nothing in it comes from outside: it is always a recipe.
        Self::unconfigured_by(require_key, Recipe::builder().host().build().unwrap_or_default())
    }

    /// The same, with requests compared by this recipe.
    pub(crate) fn unconfigured_by(require_key: bool, recipe: Recipe) -> Self {
        let key = if require_key { KeyRequirement::Required } else { KeyRequirement::Optional };
        let recipe = Arc::new(recipe);
        Self(RouteSet::Unconfigured(ValidProtection::default().with_key(key).with_recipe(recipe)))
    }

    /// Those that are declared. The patterns must not be ambiguous; the configuration sees to that.
    pub(crate) fn declared(routes: Vec<Route>) -> Self {
        let mut declared = Declared {
            post: ByPath::default(),
            patch: ByPath::default(),
            upper_case: routes.iter().any(|route| route.pattern.has_upper_case()),
            routes,
        };
        let Declared { routes, post, patch, .. } = &mut declared;
        for (place, Route { pattern, .. }) in routes.iter().enumerate() {
            let of_method = if *pattern.method() == Method::POST { &mut *post } else { &mut *patch };
            if pattern.is_exact() {
                of_method.exact.insert(pattern.path().to_owned(), place);
            } else {
                of_method.open.push(place);
            }
        }
        for of_method in [post, patch] {
            of_method.open.sort_by_key(|place| std::cmp::Reverse(routes[*place].pattern.literals()));
        }
        Self(RouteSet::Declared(Arc::new(declared)))
    }

    /// The declared routes.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        match &self.0 {
            RouteSet::Unconfigured(_) => &[],
            RouteSet::Declared(declared) => &declared.routes,
        }
    }

    /// How everything is protected, where no route is declared.
    #[must_use]
    pub fn for_all(&self) -> Option<&Protection> {
        match &self.0 {
            RouteSet::Unconfigured(protection) => Some(protection),
            RouteSet::Declared(_) => None,
        }
    }

    /// The operation that a request is, and how it is protected; `None` where it passes untouched.
    ///
    /// An exact path beats one with `{name}`, and of two with names the one with fewer. The query does not matter.
    #[must_use]
    pub fn select(&self, parts: &Parts) -> Option<Protected> {
        let path = parts.uri.path();
        match &self.0 {
            RouteSet::Unconfigured(protection) => matches!(parts.method, Method::POST | Method::PATCH)
                .then(|| (format!("{} {path}", parts.method), protection.clone())),
            RouteSet::Declared(declared) => {
                let route = declared.select(&parts.method, path)?;
                Some((route.operation.clone(), route.protection.clone()))
            }
        }
    }

    /// The label under which metrics count an operation: its configured name. A path out of a request is no label, for
    /// there would be as many as clients think of.
    #[must_use]
    pub fn metric_label<'a>(&self, operation: &'a str) -> &'a str {
        match &self.0 {
            RouteSet::Unconfigured(_) => UNCONFIGURED,
            RouteSet::Declared(_) => operation,
        }
    }

    /// The rules of an operation by its name, for settling it. Of an operation that is not declared any more, the default.
    #[must_use]
    pub fn policy_of(&self, operation: &str) -> Arc<Policy> {
        match &self.0 {
            RouteSet::Unconfigured(protection) => Arc::clone(&protection.policy),
            RouteSet::Declared(declared) => declared
                .routes
                .iter()
                .find(|route| route.operation == operation)
                .map_or_else(Arc::default, |route| Arc::clone(&route.protection.policy)),
        }
    }
}

impl Declared {
    fn of_method(&self, method: &Method) -> Option<&ByPath> {
        match *method {
            Method::POST => Some(&self.post),
            Method::PATCH => Some(&self.patch),
            _ => None,
        }
    }

    fn select(&self, method: &Method, path: &str) -> Option<&Route> {
        let of_method = self.of_method(method)?;
        let place = of_method.exact.get(path).copied().or_else(|| {
            of_method.open.iter().copied().find(|place| self.routes[*place].pattern.matches(path))
        })?;
        Some(&self.routes[place])
    }
}

#[cfg(test)]
mod tests;
