//! Which requests are protected, and how.
//!
//! - `pattern.rs`: the requests of one route;
//! - `key_scope.rs`: within what a key names one of them;
//! - `path_aliases.rs`: the ways in which one path can be spelt;
//! - `ambiguous.rs`: requests that a service may take for others than they look like.

mod ambiguous;
mod fingerprint;
mod key_scope;
mod path_aliases;
mod pattern;
mod reconcile;

pub use ambiguous::AmbiguousRequest;
pub use fingerprint::{FingerprintConfig, HostRule};
pub(crate) use key_scope::KeyScopes;
pub use key_scope::RouteKeyScope;
pub(crate) use path_aliases::{Illegible, legible};
pub(crate) use pattern::Overlap;
pub use pattern::Pattern;
pub use reconcile::{PollUrl, ReconcileConfig};

use pattern::METHODS;

use http::request::Parts;
use http::{HeaderName, Method};
use semel::Policy;
use semel::fingerprint::Recipe;
use semel::headers::IDEMPOTENCY_KEY;
use semel::key::KeySources;
use semel_tower::{KeyRequirement, Protected, ValidProtection};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// One operation that is protected.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name; `None`: each method and path is an operation of its own, and its name.
    pub operation: Option<String>,
    /// Which requests it is.
    pub pattern: Pattern,
    /// Within what a key names one request.
    pub key_scope: RouteKeyScope,
    /// How it is protected.
    pub protection: ValidProtection,
    /// The headers that are kept for retries besides the usual ones.
    pub keep_headers: Vec<HeaderName>,
    /// What counts as the same request; the protection's recipe is made of it.
    pub fingerprint: FingerprintConfig,
    /// How doubt about it is settled by asking, if it is.
    pub reconcile: Option<ReconcileConfig>,
}

impl Route {
    /// Whether records are called by the method and path of their request, and not by the operation's name.
    pub(crate) fn is_by_path(&self) -> bool {
        self.operation.is_none() || self.key_scope == RouteKeyScope::Path
    }

    /// What metrics, traces and messages call it: its operation's name, else its method and path pattern. Where paths name operations,
    /// there are as many names as clients think of.
    #[must_use]
    pub fn label(&self) -> &str {
        self.operation.as_deref().unwrap_or(self.pattern.as_str())
    }
}

/// How every POST and PATCH is protected where no route is declared.
#[derive(Clone, Debug, Default)]
pub struct ForAll {
    /// How they are protected.
    pub protection: ValidProtection,
    /// The headers that are kept for retries besides the usual ones.
    pub keep_headers: Vec<HeaderName>,
    /// What counts as the same request; the protection's recipe is made of it.
    pub fingerprint: FingerprintConfig,
    /// How doubt is settled by asking, if it is.
    pub reconcile: Option<ReconcileConfig>,
}

/// Which requests are protected: those of the declared routes, or every POST and PATCH with a key.
#[derive(Clone, Debug)]
pub struct Routes(RouteSet);

#[derive(Clone, Debug)]
enum RouteSet {
    Unconfigured(Arc<ForAll>),
    Declared(Arc<Declared>),
}

struct Declared {
    routes: Vec<Route>,
    /// In the order of [`METHODS`].
    by_method: [ByPath; METHODS.len()],
    by_name: HashMap<String, usize>,
    /// Some route's key is not in the usual header.
    keys_elsewhere: bool,
    /// Some path has capital letters, so that a request without any may mean it.
    upper_case: bool,
}

/// Shows the routes. The indices over them have no order that repeats.
impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared").field("routes", &self.routes).finish_non_exhaustive()
    }
}

/// The routes of one method, by their places in the list.
#[derive(Default)]
struct ByPath {
    exact: HashMap<String, usize>,
    /// The more specific first.
    open: Vec<usize>,
}

/// The label under which metrics count what no route declares.
pub const UNCONFIGURED: &str = "unconfigured";

impl Routes {
    /// Every POST and PATCH that brings a key. Without one it passes, unless `require_key`.
    #[must_use]
    pub fn unconfigured(require_key: bool) -> Self {
        let key = if require_key { KeyRequirement::Required } else { KeyRequirement::Optional };
        // Nothing in it comes from outside: it is always a recipe.
        let recipe = Arc::new(Recipe::builder().host().build().unwrap_or_default());
        let protection = ValidProtection::default().with_key(key).with_recipe(recipe);
        Self::for_everything(ForAll { protection, ..ForAll::default() })
    }

    /// The same with these rules.
    pub(crate) fn for_everything(rules: ForAll) -> Self {
        Self(RouteSet::Unconfigured(Arc::new(rules)))
    }

    /// Those that are declared. The patterns must not be ambiguous; the configuration sees to that.
    pub(crate) fn declared(routes: Vec<Route>) -> Self {
        let mut declared = Declared {
            by_method: Default::default(),
            by_name: HashMap::new(),
            keys_elsewhere: routes.iter().any(|route| route.protection.key_sources != KeySources::default()),
            upper_case: routes.iter().any(|route| route.pattern.has_upper_case()),
            routes,
        };
        let Declared { routes, by_method, by_name, .. } = &mut declared;
        for (place, Route { pattern, operation, .. }) in routes.iter().enumerate() {
            if let Some(operation) = operation {
                by_name.insert(operation.clone(), place);
            }
            let Some(of_method) = place_of(pattern.method()).and_then(|method| by_method.get_mut(method))
            else {
                continue;
            };
            if pattern.is_exact() {
                of_method.exact.insert(pattern.path().to_owned(), place);
            } else {
                of_method.open.push(place);
            }
        }
        for of_method in by_method {
            let by_specificity =
                |one: &usize, other: &usize| routes[*one].pattern.by_specificity(&routes[*other].pattern);
            of_method.open.sort_by(by_specificity);
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
    pub fn for_all(&self) -> Option<&ForAll> {
        match &self.0 {
            RouteSet::Unconfigured(rules) => Some(rules),
            RouteSet::Declared(_) => None,
        }
    }

    /// The operation that a request is, and how it is protected; `None` where it passes untouched.
    ///
    /// Of several routes that match, the most specific one is taken: compared segment by segment, a literal beats `{name}`, and `{name}`
    /// beats `**`. The query does not matter.
    #[must_use]
    pub fn select(&self, parts: &Parts) -> Option<Protected> {
        let path = parts.uri.path();
        match &self.0 {
            RouteSet::Unconfigured(rules) => is_for_all(&parts.method)
                .then(|| (format!("{} {path}", parts.method), rules.protection.clone())),
            RouteSet::Declared(declared) => {
                let route = declared.select(&parts.method, path)?;
                let operation = match &route.operation {
                    Some(operation) if !route.is_by_path() => operation.clone(),
                    _ => format!("{} {path}", parts.method),
                };
                Some((operation, route.protection.clone()))
            }
        }
    }

    /// The headers in which keys are looked for, the usual one among them.
    pub(crate) fn key_headers(&self) -> Vec<HeaderName> {
        let mut headers = vec![IDEMPOTENCY_KEY];
        let for_all = self.for_all().map(|rules| &rules.protection);
        for protection in self.routes().iter().map(|route| &route.protection).chain(for_all) {
            for name in protection.key_sources.headers() {
                if !headers.contains(name) {
                    headers.push(name.clone());
                }
            }
        }
        headers
    }

    /// Whether a request is protected by a key that is not in the usual header.
    pub(crate) fn has_key_elsewhere(&self, parts: &Parts) -> bool {
        let protection = match &self.0 {
            RouteSet::Unconfigured(rules) => is_for_all(&parts.method).then_some(&rules.protection),
            RouteSet::Declared(declared) if declared.keys_elsewhere => {
                declared.select(&parts.method, parts.uri.path()).map(|route| &route.protection)
            }
            RouteSet::Declared(_) => None,
        };
        protection.is_some_and(|protection| {
            protection.key_sources != KeySources::default() && protection.may_have_key(parts)
        })
    }

    /// Whether every request of a method is protected.
    pub(crate) fn protects_all(&self, method: &Method) -> bool {
        self.for_all().is_some() && is_for_all(method)
    }

    /// The declared route that requests of this method and path are of.
    pub(crate) fn of_request(&self, method: &Method, path: &str) -> Option<&Route> {
        match &self.0 {
            RouteSet::Unconfigured(_) => None,
            RouteSet::Declared(declared) => declared.select(method, path),
        }
    }

    /// The route that an operation of this name is of: the one that is called so, or, for a method and a path, the one that such a request
    /// is of, if its records are called so.
    #[must_use]
    pub fn of_operation(&self, operation: &str) -> Option<&Route> {
        let RouteSet::Declared(declared) = &self.0 else { return None };
        if let Some(&place) = declared.by_name.get(operation) {
            return declared.routes.get(place);
        }
        let (method, path) = operation.split_once(' ')?;
        let route = declared.select(&Method::from_bytes(method.as_bytes()).ok()?, path)?;
        route.is_by_path().then_some(route)
    }

    /// The label under which metrics count an operation: its name, where somebody chose it, else its route's method and path pattern. A
    /// path out of a request is no label, for there would be as many as clients think of.
    #[must_use]
    pub fn metric_label<'a>(&'a self, operation: &'a str) -> &'a str {
        match &self.0 {
            RouteSet::Unconfigured(_) => UNCONFIGURED,
            RouteSet::Declared(_) => self.of_operation(operation).map_or(operation, Route::label),
        }
    }

    /// The rules of an operation by its name, for settling it. Of an operation that is not declared any more, the default.
    #[must_use]
    pub fn policy_of(&self, operation: &str) -> Arc<Policy> {
        match &self.0 {
            RouteSet::Unconfigured(rules) => Arc::clone(&rules.protection.policy),
            RouteSet::Declared(_) => self
                .of_operation(operation)
                .map_or_else(Arc::default, |route| Arc::clone(&route.protection.policy)),
        }
    }
}

/// Whether requests of a method are protected where no route is declared.
fn is_for_all(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PATCH)
}

fn place_of(method: &Method) -> Option<usize> {
    METHODS.iter().position(|protected| protected == method)
}

impl Declared {
    fn select(&self, method: &Method, path: &str) -> Option<&Route> {
        let of_method = &self.by_method[place_of(method)?];
        let place = of_method.exact.get(path).copied().or_else(|| {
            of_method.open.iter().copied().find(|place| self.routes[*place].pattern.matches(path))
        })?;
        Some(&self.routes[place])
    }
}

#[cfg(test)]
mod tests;
