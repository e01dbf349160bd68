//! Keys that a change of the configuration would orphan.
//!
//! A key counts within its operation. If an operation gets another name, or a path that was covered by a catch-all gets a name at all, its
//! records are not found under the new one, and retries would execute again. So the names that are in force are kept in the store; before
//! others come into force, the live keys of those that would be lost are counted, and the change is refused unless `formerly` says where to
//! look. A route whose requests nothing protects any more was taken out on purpose.

use crate::config::Config;
use crate::route::{Pattern, Route, Routes};
use bytes::Bytes;
use http::Method;
use semel::transition::state_at;
use semel::{Engine, Filter, State, StoreError};
use semel_tower::FormerName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Under which name the layout is kept.
const NAME: &str = "gateway/operations";

const PAGE: usize = 1000;
/// No more keys are counted of one operation, and, where paths name operations, no more records are looked at.
const LIMIT: usize = 50_000;
/// No more operations are told of.
const TOLD: usize = 5;

/// Which operations there are, as far as it decides which record a request finds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Layout {
    /// Every POST and PATCH, by method and path.
    for_all: bool,
    routes: Vec<Place>,
}

/// A route, and the names under which its requests are looked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Place {
    pattern: String,
    /// Today's and former ones.
    names: Vec<String>,
    /// Also, or alone, by method and path.
    by_path: bool,
}

/// Live keys that would not be found any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrphanedKeys {
    /// By operation: how many, and which route would have to say so.
    operations: Vec<(String, usize, Option<String>)>,
}

impl std::error::Error for OrphanedKeys {}

impl fmt::Display for OrphanedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "requests with live keys would execute again, because their operations would have other names",
        )?;
        for (operation, count, route) in self.operations.iter().take(TOLD) {
            let plural = if *count == 1 { "" } else { "s" };
            write!(f, "; {operation} has {count} live key{plural}: ")?;
            match route {
                Some(route) => write!(f, "add formerly = [\"{operation}\"] to the route \"{route}\"")?,
                None => f.write_str("keep its route until they have expired")?,
            }
        }
        match self.operations.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, "; and {more} more operations"),
        }
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

/// A layout that may come into force.
pub(crate) struct Checked {
    before: Option<Bytes>,
    next: Bytes,
}

/// Checks that no live key would be lost.
pub(crate) async fn check(engine: &Engine, config: &Config) -> Result<Checked, OperationsError> {
    let routes = &config.routes;
    let next = Bytes::from(serde_json::to_vec(&Layout::of(routes)).unwrap_or_default());
    let before = engine.store().recall(NAME.into()).await?;
    // A later version may have written something else.
    let known = before.as_ref().filter(|before| **before != next);
    if let Some(layout) = known.and_then(|text| serde_json::from_slice::<Layout>(text).ok()) {
        let operations = orphaned(engine, &layout, routes).await?;
        if !operations.is_empty() {
            return Err(OrphanedKeys { operations }.into());
        }
    }
    Ok(Checked { before, next })
}

impl Checked {
    /// Keeps the layout that is in force now.
    pub(crate) async fn keep(self, engine: &Engine) {
        let Self { before, next } = self;
        let kept = match before {
            Some(before) if before == next => return,
            Some(before) => engine.store().replace(NAME.into(), before, next).await.map(|_| ()),
            None => engine.store().remember(NAME.into(), next).await.map(|_| ()),
        };
        if let Err(error) = kept {
            tracing::warn!(%error, "cannot keep in the store which operations there are");
        }
    }
}

impl Layout {
    fn of(routes: &Routes) -> Self {
        let told = |route: &Route| Place {
            pattern: route.pattern.to_string(),
            names: names_of(route).map(str::to_owned).collect(),
            by_path: route.operation.is_none() || is_by_path(route),
        };
        Self { for_all: routes.for_all().is_some(), routes: routes.routes().iter().map(told).collect() }
    }
}

type Orphans = Vec<(String, usize, Option<String>)>;

async fn orphaned(engine: &Engine, before: &Layout, routes: &Routes) -> Result<Orphans, StoreError> {
    let mut orphans = Vec::new();
    for place in &before.routes {
        let pattern = Pattern::parse(&place.pattern).ok();
        let route = pattern.as_ref().and_then(|pattern| taken_over_by(routes, pattern));
        let is_for_all = pattern.as_ref().is_some_and(|pattern| routes.protects_all(pattern.method()));
        if route.is_none() && !is_for_all {
            continue;
        }
        for operation in &place.names {
            let is_path = operation.contains(' ');
            let stays = routes.of_operation(operation).is_some() || is_path && routes.for_all().is_some();
            if stays || routes.routes().iter().any(|route| is_name(route, operation)) {
                continue;
            }
            let count = live_keys(engine, operation).await?;
            if count > 0 {
                orphans.push((operation.clone(), count, route.map(|route| route.pattern.to_string())));
            }
        }
    }
    let paths_were_names = before.for_all || before.routes.iter().any(|place| place.by_path);
    if paths_were_names && routes.for_all().is_none() {
        orphans.extend(newly_named(engine, routes).await?);
    }
    Ok(orphans)
}

/// The names that a route's operation has and had.
fn names_of(route: &Route) -> impl Iterator<Item = &str> {
    let former = route.protection.formerly.iter().filter_map(|former| match former {
        FormerName::Name(name) => Some(&**name),
        FormerName::MethodAndPath => None,
    });
    route.operation.as_deref().into_iter().chain(former)
}

/// Whether keys of an operation are looked for by a route.
fn is_name(route: &Route, operation: &str) -> bool {
    names_of(route).any(|name| name == operation) || is_by_path(route) && operation.contains(' ')
}

/// Whether keys of methods and paths are looked for, whichever these are.
fn is_by_path(route: &Route) -> bool {
    route.protection.formerly.contains(&FormerName::MethodAndPath)
}

/// The route that gets a usual request of a pattern now.
fn taken_over_by<'r>(routes: &'r Routes, pattern: &Pattern) -> Option<&'r Route> {
    let any = |segment| match segment {
        "**" => "anything",
        segment if segment.starts_with('{') => "anything",
        literal => literal,
    };
    let path = pattern.path().split('/').map(any).collect::<Vec<_>>().join("/");
    routes.of_request(pattern.method(), &path)
}

/// Keys of methods and paths that have a name now.
async fn newly_named(engine: &Engine, routes: &Routes) -> Result<Orphans, StoreError> {
    let named: Vec<_> = routes.routes().iter().filter(|route| route.operation.is_some()).collect();
    let mut orphans = Vec::new();
    let (exact, open): (Vec<_>, Vec<_>) = named.into_iter().partition(|route| route.pattern.is_exact());
    for route in exact {
        let operation = route.pattern.as_str();
        if is_name(route, operation) {
            continue;
        }
        let count = live_keys(engine, operation).await?;
        if count > 0 {
            orphans.push((operation.to_owned(), count, Some(operation.to_owned())));
        }
    }
    let open: Vec<_> = open.into_iter().filter(|route| !is_by_path(route)).collect();
    if open.is_empty() {
        return Ok(orphans);
    }
    // By pattern: paths are as many as clients think of.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for operation in live(engine, Filter::default()).await? {
        let Some((method, path)) = operation.split_once(' ') else { continue };
        let Ok(method) = Method::from_bytes(method.as_bytes()) else { continue };
        let Some(route) = routes.of_request(&method, path) else { continue };
        if open.iter().any(|open| std::ptr::eq(*open, route)) {
            *counts.entry(route.pattern.as_str()).or_default() += 1;
        }
    }
    for (pattern, count) in counts {
        orphans.push((pattern.to_owned(), count, Some(pattern.to_owned())));
    }
    Ok(orphans)
}

async fn live_keys(engine: &Engine, operation: &str) -> Result<usize, StoreError> {
    let filter = Filter { operation: Some(operation.to_owned()), ..Filter::default() };
    Ok(live(engine, filter).await?.len())
}

/// The operations of records that a filter lets through and that are not over, newest first, one for each record up to the limit.
async fn live(engine: &Engine, filter: Filter) -> Result<Vec<Arc<str>>, StoreError> {
    let now = engine.store().now().await?.earliest;
    let (mut live, mut seen, mut from) = (Vec::new(), 0, None);
    while seen < LIMIT {
        let page = engine.store().list(filter.clone(), from, PAGE).await?;
        seen += page.records.len() + page.damaged;
        let not_over = page.records.into_iter().filter(|record| state_at(record, now) != State::Expired);
        live.extend(not_over.map(|record| record.key.operation));
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    Ok(live)
}
