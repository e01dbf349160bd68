//! Which requests are protected, and how.

mod pattern;
mod spelling;

pub(crate) use pattern::Overlap;
pub use pattern::Pattern;

use crate::config::{FingerprintConfig, ReconcileConfig};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use semel::Policy;
use semel::fingerprint::Recipe;
use semel_tower::{KeyRequirement, Protected, Protection};
use spelling::{EncodedSlash, is_plain, undisguised};
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
    pub protection: Arc<Protection>,
    /// The headers that are kept for retries besides the usual ones.
    pub keep_headers: Vec<HeaderName>,
    /// What counts as the same request; the protection's recipe is made of it.
    pub fingerprint: FingerprintConfig,
    /// How doubt about it is settled by asking, if it is.
    pub reconcile: Option<ReconcileConfig>,
}

/// Which requests are protected: those of the declared routes, or every POST and PATCH with a key.
#[derive(Clone, Debug)]
pub struct Routes(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Unconfigured(Arc<Protection>),
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
        Self(Kind::Unconfigured(Arc::new(Protection { key, recipe, ..Protection::default() })))
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
        Self(Kind::Declared(Arc::new(declared)))
    }

    /// The declared routes.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        match &self.0 {
            Kind::Unconfigured(_) => &[],
            Kind::Declared(declared) => &declared.routes,
        }
    }

    /// How everything is protected, where no route is declared.
    #[must_use]
    pub fn for_all(&self) -> Option<&Protection> {
        match &self.0 {
            Kind::Unconfigured(protection) => Some(protection),
            Kind::Declared(_) => None,
        }
    }

    /// The operation that a request is, and how it is protected; `None` where it passes untouched.
    ///
    /// An exact path beats one with `{name}`, and of two with names the one with fewer. The query does not matter.
    #[must_use]
    pub fn select(&self, parts: &Parts) -> Option<Protected> {
        let path = parts.uri.path();
        match &self.0 {
            Kind::Unconfigured(protection) => matches!(parts.method, Method::POST | Method::PATCH)
                .then(|| (format!("{} {path}", parts.method), Arc::clone(protection))),
            Kind::Declared(declared) => {
                let route = declared.select(&parts.method, path)?;
                Some((route.operation.clone(), Arc::clone(&route.protection)))
            }
        }
    }

    /// Whether a request that [`select`](Self::select) lets pass is spelt so that the service may take it for a protected one: a
    /// slash too many, `.` and `..`, capital letters, percent-encoding, parameters, the method in lower case, or another one in a header.
    /// It must be refused then, for nobody would know whether it happened once.
    #[must_use]
    pub fn disguised(&self, parts: &Parts) -> Option<Disguised> {
        if let Kind::Declared(declared) = &self.0 {
            let path = parts.uri.path();
            let is_protected = |method: &Method| {
                declared.select(method, path).is_some() || declared.would_match(method, path)
            };
            let mut others = other_methods(parts);
            if others.any(|meant| is_protected(&parts.method) || meant.as_ref().is_some_and(is_protected)) {
                return Some(Disguised::Override);
            }
        }
        let method = protected_method(&parts.method)?;
        let as_written = method == parts.method;
        match &self.0 {
            Kind::Unconfigured(_) => (!as_written).then_some(Disguised::Method),
            Kind::Declared(declared) => {
                let path = parts.uri.path();
                if declared.select(&method, path).is_some() {
                    return (!as_written).then_some(Disguised::Method);
                }
                declared.would_match(&method, path).then_some(Disguised::Path)
            }
        }
    }

    /// The label under which metrics count an operation: its name, where somebody chose it. A path out of a request is no label, for
    /// there would be as many as clients think of.
    #[must_use]
    pub fn metric_label<'a>(&self, operation: &'a str) -> &'a str {
        match &self.0 {
            Kind::Unconfigured(_) => UNCONFIGURED,
            Kind::Declared(_) => operation,
        }
    }

    /// The rules of an operation by its name, for whoever settles it. Of an operation that is not declared any more, the default.
    #[must_use]
    pub fn policy_of(&self, operation: &str) -> Arc<Policy> {
        match &self.0 {
            Kind::Unconfigured(protection) => Arc::clone(&protection.policy),
            Kind::Declared(declared) => declared
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

    /// Whether some spelling of the path is a protected one. Takes no memory for a path that is spelt as usual.
    fn would_match(&self, method: &Method, path: &str) -> bool {
        if is_plain(path) {
            let capitals = self.upper_case || path.bytes().any(|byte| byte.is_ascii_uppercase());
            let segments = path.split('/').map(str::as_bytes).filter(|segment| !segment.is_empty());
            return capitals && self.any_plainly(method, segments);
        }
        [EncodedSlash::Parts, EncodedSlash::IsData].into_iter().any(|slash| {
            let segments = undisguised(path, slash);
            self.any_plainly(method, segments.iter().map(Vec::as_slice))
        })
    }

    fn any_plainly<'s>(&self, method: &Method, segments: impl Iterator<Item = &'s [u8]> + Clone) -> bool {
        let mut of_method = self.routes.iter().filter(|route| route.pattern.method() == method);
        of_method.any(|route| route.pattern.matches_plainly(segments.clone()))
    }
}

/// The method that a request has, as a careless service reads it, if that is one that can be protected.
fn protected_method(method: &Method) -> Option<Method> {
    [Method::POST, Method::PATCH]
        .into_iter()
        .find(|protected| protected.as_str().eq_ignore_ascii_case(method.as_str()))
}

/// What headers would have the service take for the method in place of the request's own: for each, the protected method that it is, if any.
fn other_methods(parts: &Parts) -> impl Iterator<Item = Option<Method>> {
    let named = METHOD_OVERRIDES.iter().flat_map(|name| parts.headers.get_all(*name));
    named
        .map(|value| value.as_bytes().trim_ascii())
        .filter(|method| !method.eq_ignore_ascii_case(parts.method.as_str().as_bytes()))
        .map(|method| Method::from_bytes(method).ok().and_then(|method| protected_method(&method)))
}

/// The headers by which services are told of another method. Some frameworks believe them unless told not to.
const METHOD_OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// A request that may be a protected one in disguise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disguised {
    /// Its path is spelt in another way.
    Path,
    /// Its method is not in upper case.
    Method,
    /// A header names another method than its own.
    Override,
}

impl Disguised {
    /// What the client is told: 400, with nothing executed.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        let detail = match self {
            Self::Path => {
                "The path of this request is another spelling of a protected operation. Send it as it is documented: without \
                 double slashes, dot segments, a slash at the end, parameters, needless percent-encoding or other capital letters."
            }
            Self::Method => "The method of this request is not in upper case. Send it as it is documented.",
            Self::Override => {
                "A header of this request (X-HTTP-Method-Override or the like) names another method than its own, and one of the \
                 two is protected here. Send it by the method that is meant."
            }
        };
        let document = serde_json::json!({
            "type": "about:blank", "title": "Bad Request", "status": 400, "detail": detail, "retryable": false,
        });
        let mut response = Response::new(Bytes::from(document.to_string()));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

#[cfg(test)]
mod tests;
