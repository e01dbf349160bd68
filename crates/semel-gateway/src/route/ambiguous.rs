//! Requests that a service may take for others than they look like.

use super::path_aliases::{any_reading, is_canonical, is_plain};
use super::pattern::METHODS;
use super::{Declared, Route, RouteSet, Routes, is_for_all};
use crate::headers::{TARGETS, folded, is_method_override};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use semel::problem::plain;
use semel_tower::{KeyRequirement, Protection};
use std::borrow::Cow;

/// A request that may be a protected one under another spelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AmbiguousRequest {
    /// Its path is spelt in another way.
    Path,
    /// Its method is not in upper case.
    Method,
    /// A header or its query names another method than its own.
    Override,
    /// A header names another target than its own.
    Target,
}

impl Routes {
    /// Whether a request is spelt so that the service may take it for a protected operation that it is not here: a slash too many, `.` and
    /// `..`, capital letters, percent-encoding, parameters, the method in lower case, or another method or target in a header.
    /// It must be refused then, for whether that operation happened once would be unknown.
    #[must_use]
    pub fn ambiguity(&self, parts: &Parts) -> Option<AmbiguousRequest> {
        let others = Others::of(parts);
        match &self.0 {
            RouteSet::Unconfigured(rules) => unconfigured(&rules.protection, parts, &others),
            RouteSet::Declared(declared) => declared.ambiguity(parts, &others),
        }
    }
}

/// Where the path itself names the operation, it has to be spelt in the one way there is.
fn unconfigured(protection: &Protection, parts: &Parts, others: &Others<'_>) -> Option<AmbiguousRequest> {
    let path = parts.uri.path();
    let method = protected_method(parts.method.as_str().as_bytes()).filter(is_for_all);
    if method.as_ref().is_some_and(|method| *method != parts.method) {
        return Some(AmbiguousRequest::Method);
    }
    if !is_promised(protection, parts) {
        return None;
    }
    let names_protected = || others.methods.iter().flatten().any(is_for_all);
    if !others.methods.is_empty() && (method.is_some() || names_protected()) {
        return Some(AmbiguousRequest::Override);
    }
    method?;
    if !others.targets.is_empty() {
        return Some(AmbiguousRequest::Target);
    }
    (!is_canonical(path)).then_some(AmbiguousRequest::Path)
}

/// Whether anything is promised of a request: not if it brings no key and needs none.
fn is_promised(protection: &Protection, parts: &Parts) -> bool {
    protection.key == KeyRequirement::Required || protection.may_have_key(parts)
}

impl Declared {
    fn ambiguity(&self, parts: &Parts, others: &Others<'_>) -> Option<AmbiguousRequest> {
        let path = parts.uri.path();
        let method = protected_method(parts.method.as_str().as_bytes());
        let own = self.select(&parts.method, path);
        if !others.methods.is_empty() {
            let is_protected = |method: &Method| {
                self.select(method, path).is_some() || self.is_read_as_another(method, path, None)
            };
            let is_meant = |meant: &Option<Method>| meant.as_ref().is_some_and(is_protected);
            if method.as_ref().is_some_and(is_protected) || others.methods.iter().any(is_meant) {
                return Some(AmbiguousRequest::Override);
            }
        }
        if !others.targets.is_empty() {
            let methods = others.methods.iter().flatten().chain(&method);
            let mut meant =
                methods.flat_map(|method| others.targets.iter().map(move |target| (method, target)));
            let is_another = |(method, target): (&Method, &Cow<'_, str>)| {
                self.select(method, target).is_some_and(|route| !is_same(route, own))
                    || self.is_read_as_another(method, target, own)
            };
            if meant.any(is_another) {
                return Some(AmbiguousRequest::Target);
            }
        }
        let method = method?;
        if method != parts.method && self.select(&method, path).is_some() {
            return Some(AmbiguousRequest::Method);
        }
        // What is declared to the letter is not looked at again.
        if own.is_some_and(|own| own.pattern.is_exact()) {
            return None;
        }
        let is_ambiguous = self.is_read_as_another(&method, path, own)
            || own.is_some_and(|own| {
                own.takes_canonical_paths() && is_promised(&own.protection, parts) && !is_canonical(path)
            });
        is_ambiguous.then_some(AmbiguousRequest::Path)
    }

    /// Whether some way to read the path leads to another route than `own`. Takes no memory for a path that is spelt as usual.
    fn is_read_as_another(&self, method: &Method, path: &str, own: Option<&Route>) -> bool {
        if is_plain(path) {
            let capitals = self.upper_case || path.bytes().any(|byte| byte.is_ascii_uppercase());
            let segments = path.split('/').map(str::as_bytes).filter(|segment| !segment.is_empty());
            return capitals && self.leads_to_another(method, segments, own);
        }
        any_reading(path, |reading| {
            self.leads_to_another(method, reading.iter().map(|segment| &**segment), own)
        })
    }

    /// Whether a service may take these segments for another route than `own`: a more specific one, or any where they are not those of
    /// `own`.
    fn leads_to_another<'s>(
        &self,
        method: &Method,
        segments: impl Iterator<Item = &'s [u8]> + Clone,
        own: Option<&Route>,
    ) -> bool {
        let matches = |route: &Route| {
            route.pattern.method() == method && route.pattern.matches_plainly(segments.clone())
        };
        let own_matches = own.filter(|own| matches(own));
        self.routes.iter().any(|route| {
            !is_same(route, own)
                && own_matches.is_none_or(|own| route.pattern.by_specificity(&own.pattern).is_lt())
                && matches(route)
        })
    }
}

impl Route {
    /// Whether the path itself names the operation, or no segment of it says where it ends: there must be one way to write it then.
    fn takes_canonical_paths(&self) -> bool {
        self.operation.is_none() || self.pattern.is_catch_all()
    }
}

fn is_same(route: &Route, own: Option<&Route>) -> bool {
    own.is_some_and(|own| std::ptr::eq(route, own))
}

/// The method that a careless service takes these bytes for, if that is one that can be protected.
fn protected_method(bytes: &[u8]) -> Option<Method> {
    METHODS.into_iter().find(|protected| protected.as_str().as_bytes().eq_ignore_ascii_case(bytes))
}

/// What a request names besides its own method and target. Both are empty, without memory, in most requests.
struct Others<'p> {
    /// For each, the protected method that it is, if any.
    methods: Vec<Option<Method>>,
    /// Paths.
    targets: Vec<Cow<'p, str>>,
}

impl<'p> Others<'p> {
    fn of(parts: &'p Parts) -> Self {
        let own = parts.method.as_str().as_bytes();
        let mut others = Self { methods: Vec::new(), targets: Vec::new() };
        let mut add = |method: &[u8]| {
            let method = method.trim_ascii();
            if !method.eq_ignore_ascii_case(own) {
                others.methods.push(protected_method(method));
            }
        };
        for (name, value) in &parts.headers {
            if is_method_override(name.as_str()) {
                add(value.as_bytes());
            } else if TARGETS.contains(name) {
                let target = path_of(value.as_bytes());
                if target != parts.uri.path() {
                    others.targets.push(target);
                }
            }
        }
        for pair in parts.uri.query().into_iter().flat_map(|query| query.split(['&', ';'])) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if names_a_method(name) {
                add(&super::path_aliases::decoded(value.as_bytes()).unwrap_or_else(|| value.into()));
            }
        }
        others
    }
}

/// Whether a query parameter is `_method`, or one of the headers under which ASP.NET takes a parameter too, as PHP and others read names:
/// without their index, and with other punctuation.
fn names_a_method(name: &str) -> bool {
    // `_method` is the shortest.
    if name.len() < 7 {
        return false;
    }
    let decoded = super::path_aliases::decoded(name.as_bytes());
    let name = decoded.as_deref().unwrap_or(name.as_bytes()).trim_ascii();
    let is_end = |(at, byte): (usize, &u8)| (at > 0 && *byte == b'[') || byte.is_ascii_control();
    let end = name.iter().enumerate().position(is_end).unwrap_or(name.len());
    let Ok(name) = std::str::from_utf8(&name[..end]) else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    is_method_override(&name) || folded(&name) == "-method"
}

/// The path of a target, which may be a whole address.
fn path_of(target: &[u8]) -> Cow<'_, str> {
    let target = target.trim_ascii();
    let end = target.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
    let target = &target[..end];
    let path = match target.windows(3).position(|window| window == b"://") {
        Some(scheme) if !target.starts_with(b"/") => {
            let after = &target[scheme + 3..];
            after.iter().position(|&byte| byte == b'/').map_or(&b"/"[..], |path| &after[path..])
        }
        _ => target,
    };
    String::from_utf8_lossy(path)
}

impl AmbiguousRequest {
    /// What the client is told: 400, with nothing executed.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        let detail = match self {
            Self::Path => {
                "The path of this request may be another spelling of a protected operation. Send it as documented: without \
                 double slashes, dot segments, a slash or dot at the end, parameters, needless percent-encoding or other \
                 capital letters."
            }
            Self::Method => "The method of this request is not in upper case. Send it as documented.",
            Self::Override => {
                "A header or query parameter of this request (X-HTTP-Method-Override, _method or the like) names another \
                 method than its own, and one of the two is protected here. Use the method that you mean."
            }
            Self::Target => {
                "A header of this request (X-Original-URL or the like) names another path than its own, which is protected \
                 here. Use the path that you mean."
            }
        };
        plain(StatusCode::BAD_REQUEST, false, detail)
    }
}
