//! The fingerprint of a request. Large bodies are hashed on another thread, because the other requests of this one would wait
//! for as long as it takes.

use crate::protection::{FormerName, ValidProtection};
use crate::state::{LayerState, path};
use bytes::Bytes;
use http::request::Parts;
use semel::canonical::CheckedJson;
use semel::fingerprint::{Command, HttpRequest, Recipe, RecipeUnavailable, Subject, fingerprint_of_checked};
use semel::{Fingerprint, KeyScope, RecordKey, StoreError};
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

/// Up to here it takes less than a few tenths of a millisecond, and handing it over would be more than it is worth.
pub(crate) const LARGE: usize = 16 * 1024;

/// As many at once as there are cores: more would only take them from those who serve.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Does it on another thread, once it is its turn; `None` while the runtime shuts down.
pub(crate) async fn in_turn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let _turn = TURNS.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}

/// A request, with what it takes to fingerprint it.
pub(crate) struct FingerprintedRequest {
    pub(crate) key: RecordKey,
    pub(crate) protection: ValidProtection,
    /// Today's, keyed.
    recipe: Arc<Recipe>,
    state: Arc<LayerState>,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// Its body, if that was looked into for the key.
    checked: Option<CheckedJson>,
    /// What the handler takes it for, if that is what is compared.
    command: Option<Command>,
    /// By the current recipe, if it was computed already.
    made: Option<Fingerprint>,
}

impl FingerprintedRequest {
    /// The request, with its fingerprint computed if the body is large. `None` while the runtime shuts down.
    ///
    /// # Errors
    /// The store did not answer, or the secret in it does not open: nothing can be compared.
    pub(crate) async fn of(
        key: RecordKey,
        protection: ValidProtection,
        state: Arc<LayerState>,
        parts: Parts,
        body: Bytes,
        checked: Option<CheckedJson>,
    ) -> Result<Option<Self>, StoreError> {
        let recipe = Arc::clone(&protection.recipe);
        let mut fingerprinted =
            Self { key, protection, recipe, state, parts, body, checked, command: None, made: None };
        let is_large = fingerprinted.body.len() > LARGE;
        if let Some(read) = fingerprinted.protection.command.clone() {
            let reading = move |fingerprinted: &mut Self| {
                fingerprinted.command = read.read(&fingerprinted.parts, &fingerprinted.body);
            };
            if is_large {
                let Some(read) = Box::pin(fingerprinted.on_another_thread(reading)).await else {
                    return Ok(None);
                };
                fingerprinted = read;
            } else {
                reading(&mut fingerprinted);
            }
            if let Some(command) = &fingerprinted.command {
                fingerprinted.recipe = Arc::clone(command.recipe());
            }
        }
        fingerprinted.recipe = fingerprinted.state.engine.keyed_recipe(&fingerprinted.recipe).await?;
        if !is_large {
            return Ok(Some(fingerprinted));
        }
        let making = |fingerprinted: &mut Self| {
            // What cannot be made is found out once more, at once.
            fingerprinted.made = fingerprinted.make(&fingerprinted.recipe).ok();
        };
        Ok(Box::pin(fingerprinted.on_another_thread(making)).await)
    }

    /// `None` while the runtime shuts down.
    async fn on_another_thread(mut self, work: impl FnOnce(&mut Self) + Send + 'static) -> Option<Self> {
        in_turn(move || {
            work(&mut self);
            self
        })
        .await
    }

    fn make(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.make_as(&self.key.operation, recipe)
    }

    fn make_as(&self, operation: &str, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        let host = if recipe.counts_host() { (self.state.host_of)(&self.parts) } else { None };
        let request = HttpRequest {
            operation,
            method: &self.parts.method,
            path: path(&self.parts),
            query: self.parts.uri.query(),
            host: host.as_deref(),
            headers: &self.parts.headers,
            body: &self.body,
        };
        let secret = self.state.secret.as_deref();
        match &self.command {
            Some(command) => command.fingerprint_of_request(recipe, secret, &request),
            None => fingerprint_of_checked(recipe, secret, &request, self.checked.as_ref()),
        }
    }
}

impl Subject for FingerprintedRequest {
    fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        match self.made {
            Some(made) if std::ptr::eq(recipe, &*self.recipe) => Ok(made),
            _ => self.make(recipe),
        }
    }

    fn fingerprint_as(&self, operation: &str, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        self.make_as(operation, recipe)
    }

    fn former_operations(&self) -> Vec<Arc<str>> {
        let name = |former: &FormerName| match former {
            FormerName::Name(name) => Arc::clone(name),
            FormerName::MethodAndPath => format!("{} {}", self.parts.method, path(&self.parts)).into(),
        };
        let names = self.protection.formerly.iter().map(name);
        names.filter(|name| *name != self.key.operation).collect()
    }

    fn former_scope(&self) -> Option<KeyScope> {
        self.protection.former_key_scope
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IdempotencyLayer;
    use http::Request;
    use semel::MemoryStore;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn fingerprinted(
        members: usize,
    ) -> impl Future<Output = Result<Option<FingerprintedRequest>, StoreError>> {
        let members: Vec<_> = (0..members).map(|member| format!("\"{member}\":[{member}]")).collect();
        let body = format!("{{{}}}", members.join(","));
        let request = Request::post("/payments").header("content-type", "application/json").body(()).unwrap();
        let key = RecordKey::new("tenant", "payments", "key");
        let state = Arc::clone(&IdempotencyLayer::new(MemoryStore::new()).shared);
        FingerprintedRequest::of(
            key,
            ValidProtection::default(),
            state,
            request.into_parts().0,
            body.into(),
            None,
        )
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn a_large_body_is_hashed_on_another_thread_and_comes_to_the_same() {
        let mut large = pin!(fingerprinted(50_000));
        assert!(poll(large.as_mut()).is_pending(), "this thread could serve others meanwhile");
        let large = large.await.unwrap().unwrap();
        let today = &large.recipe;
        assert_eq!(large.made, large.make(today).ok());
        assert_eq!(large.fingerprint_under(today).ok(), large.made);
        let other = Recipe::builder().ignore("/7").build().unwrap();
        assert_eq!(large.fingerprint_under(&other).ok(), large.make(&other).ok());
        assert_ne!(large.fingerprint_under(&other).ok(), large.made);
    }

    #[tokio::test]
    async fn a_small_one_is_hashed_where_it_is() {
        let Poll::Ready(Ok(Some(small))) = poll(pin!(fingerprinted(10))) else {
            panic!("it was handed over")
        };
        assert_eq!(small.made, None);
        assert!(small.fingerprint_under(&small.recipe).is_ok());
    }
}
