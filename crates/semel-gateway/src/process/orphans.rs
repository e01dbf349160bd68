//! Keys that a change of the configuration would orphan.
//!
//! A key counts within its operation, its path or its tenant. If an operation gets another name, a path that was covered by a catch-all gets a
//! name at all, or `key.scope` changes, the records are not found any more, and retries would execute again. So what is in force is
//! kept in the store; before something else comes into force, the live keys of what would be lost are counted, and the change is
//! refused unless `formerly` and `former_scope` say where to look. A route whose requests nothing protects any more was taken out on purpose.
//!
//! - `layout.rs`: what is kept, and by which names and scopes records are found;
//! - `refusal.rs`: what is said of keys that would be lost.

mod layout;
mod refusal;

pub use refusal::{OperationsError, OrphanedKeys};

use crate::config::Config;
use crate::route::{Pattern, Route, Routes};
use bytes::Bytes;
use http::Method;
use layout::{Found, Layout};
use refusal::Orphans;
use semel::{Engine, Filter, KeyScope, LiveOperations, State, StoreError, Timestamp};
use std::time::Duration;

/// Under which name the layout is kept.
const NAME: &str = "gateway/operations";

/// No more records are looked at: about a second's work for a store, whatever else it holds.
const NEWEST: usize = 1_000_000;
/// How long that may take.
const LONGEST_COUNT: Duration = Duration::from_secs(20);

/// A layout that may come into force.
pub(crate) struct Checked {
    before: Option<Bytes>,
    next: Bytes,
}

/// Checks that no live key would be lost.
pub(crate) async fn check(engine: &Engine, config: &Config) -> Result<Checked, OperationsError> {
    check_newest(engine, config, NEWEST).await
}

async fn check_newest(engine: &Engine, config: &Config, newest: usize) -> Result<Checked, OperationsError> {
    let routes = &config.routes;
    let mut next = Layout::of(routes);
    let before = engine.store().recall(NAME.into()).await?;
    // A later version may have written something else.
    let layout = before.as_ref().and_then(|text| serde_json::from_slice::<Layout>(text).ok());
    if let Some(layout) = layout.filter(|layout| !layout.is_as(&next)) {
        let now = engine.store().now().await?.latest;
        let search = Search { engine, layout: &layout, routes, newest, now };
        let orphans = search.orphans().await?;
        if !orphans.is_empty() {
            return Err(OrphanedKeys::new(orphans, newest).into());
        }
        next.retire(&layout, now);
    } else if let Some(text) = &before {
        // Nothing has changed but perhaps what a later version adds.
        return Ok(Checked { before: Some(text.clone()), next: text.clone() });
    }
    Ok(Checked { before, next: next.to_text() })
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

/// What was in force, what is to be, and the store.
struct Search<'s> {
    engine: &'s Engine,
    layout: &'s Layout,
    routes: &'s Routes,
    newest: usize,
    now: Timestamp,
}

/// Keys that would not be found, if there are any.
struct Lost {
    operation: String,
    scope: KeyScope,
    route: Option<String>,
}

impl Search<'_> {
    async fn orphans(&self) -> Result<Orphans, StoreError> {
        let lost = self.lost_names();
        let by_path = self.lost_paths();
        if lost.is_empty() && by_path.is_empty() {
            return Ok(Orphans::new());
        }
        let live = self.engine.store().live_operations(self.newest, LONGEST_COUNT).await?;
        let mut orphans = Orphans::new();
        for Lost { operation, scope, route } in lost {
            let count = live.operations.get(&(operation.clone(), scope)).copied().unwrap_or(0);
            if count > 0 || !live.is_all && self.may_be_live(&operation, scope).await? {
                orphans.insert((operation, scope), (count, self.advice(route)));
            }
        }
        if !by_path.is_empty() {
            self.of_paths(&live, &by_path, &mut orphans);
        }
        Ok(orphans)
    }

    /// The names and scopes of which nothing is found any more, although their requests are still protected.
    fn lost_names(&self) -> Vec<Lost> {
        let mut lost = Vec::new();
        for place in &self.layout.routes {
            let pattern = Pattern::parse(&place.pattern).ok();
            let route = pattern.as_ref().and_then(|pattern| taken_over_by(self.routes, pattern));
            let is_for_all =
                pattern.as_ref().is_some_and(|pattern| self.routes.protects_all(pattern.method()));
            if route.is_none() && !is_for_all {
                continue;
            }
            for scope in place.scopes() {
                for operation in place.names.iter().filter(|name| !self.is_found(name, scope)) {
                    let route = route.map(|route| route.pattern.to_string());
                    lost.push(Lost { operation: operation.clone(), scope, route });
                }
            }
        }
        lost
    }

    fn is_found(&self, operation: &str, scope: KeyScope) -> bool {
        let for_all = self.routes.for_all();
        for_all.is_some_and(|rules| Found::by(rules).finds(operation, scope))
            || self.routes.routes().iter().any(|route| Found::of(route).finds(operation, scope))
    }

    /// The scopes in which records are called by paths that the routes of today would not look for.
    fn lost_paths(&self) -> Vec<KeyScope> {
        let were = self.layout.scopes_of_paths();
        let all = |scope: &KeyScope| match self.routes.for_all() {
            Some(rules) => Found::by(rules).finds_paths(*scope),
            None => self.routes.routes().iter().all(|route| Found::of(route).finds_paths(*scope)),
        };
        were.into_iter().filter(|scope| !all(scope)).collect()
    }

    /// Counts keys that are called by paths. By pattern: paths are as many as clients think of.
    fn of_paths(&self, live: &LiveOperations, scopes: &[KeyScope], orphans: &mut Orphans) {
        let mut is_any = false;
        for ((operation, scope), count) in &live.operations {
            let Some((method, path)) = operation.split_once(' ') else { continue };
            let Ok(method) = Method::from_bytes(method.as_bytes()) else { continue };
            let found = match (self.routes.of_request(&method, path), self.routes.for_all()) {
                (Some(route), _) if !Found::of(route).finds(operation, *scope) => {
                    Some(route.pattern.to_string())
                }
                (None, Some(rules)) if !Found::by(rules).finds(operation, *scope) => Some(String::new()),
                _ => None,
            };
            let Some(pattern) = found.filter(|_| scopes.contains(scope)) else { continue };
            is_any = true;
            let (name, route) = match pattern.is_empty() {
                true => ("paths".to_owned(), None),
                false => (pattern.clone(), Some(pattern)),
            };
            let entry = orphans.entry((name, *scope));
            entry.or_insert_with(|| (0, self.advice(route))).0 += count;
        }
        let over = |scope: &&KeyScope| !self.layout.is_over(layout::PATHS, **scope, self.now);
        if !is_any && !live.is_all {
            for scope in scopes.iter().filter(over) {
                // Which ones is not known: all that were named since.
                let lost = |route: &&Route| {
                    !Found::of(route).finds_paths(*scope) && self.layout.called_by_path(&route.pattern)
                };
                for route in self.routes.routes().iter().filter(lost) {
                    let pattern = route.pattern.to_string();
                    orphans.entry((pattern.clone(), *scope)).or_insert((0, self.advice(Some(pattern))));
                }
            }
        }
    }

    /// Whether an operation of which none of the newest records is may still have live keys: unless it has had another name for longer than
    /// its keys live, and nothing of it is unfinished.
    async fn may_be_live(&self, operation: &str, scope: KeyScope) -> Result<bool, StoreError> {
        if !self.layout.is_over(operation, scope, self.now) {
            return Ok(true);
        }
        for state in [State::InProgress, State::Unknown] {
            let filter =
                Filter { operation: Some(operation.to_owned()), state: Some(state), ..Filter::default() };
            let page = self.engine.store().list(filter, None, 1).await?;
            if !page.records.is_empty() || page.damaged > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn advice(&self, route: Option<String>) -> Option<refusal::NewRoute> {
        let pattern = route?;
        let route = self.routes.routes().iter().find(|route| route.pattern.as_str() == pattern);
        Some(refusal::NewRoute {
            names: route.map(|route| Found::of(route).names()).unwrap_or_default(),
            by_path: route.is_some_and(|route| Found::of(route).is_by_path()),
            own: route.and_then(|route| route.operation.clone()),
            pattern,
        })
    }
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

#[cfg(test)]
mod tests;
