//! The fingerprint of a request with a large body, made beside the threads that serve requests: whoever shares such a thread would wait
//! for as long as it takes.

use crate::layer::{Config, path};
use crate::protection::Protection;
use bytes::Bytes;
use http::request::Parts;
use semel::fingerprint::{HttpRequest, Recipe, RecipeUnavailable, Subject, fingerprint};
use semel::{Fingerprint, RecordKey, StoreError};
use std::sync::{Arc, LazyLock};
use tokio::sync::Semaphore;

/// Up to here it takes less than a few tenths of a millisecond, and handing it over would be more than it is worth.
const LARGE: usize = 16 * 1024;

/// As many at once as there are cores: more would only take them from those who serve.
static TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// A request, with what it takes to fingerprint it.
pub(crate) struct Hashing {
    pub(crate) key: RecordKey,
    pub(crate) protection: Arc<Protection>,
    /// Today's, keyed.
    recipe: Arc<Recipe>,
    config: Arc<Config>,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// By today's recipe, if it is at hand.
    made: Option<Fingerprint>,
}

impl Hashing {
    /// Whose fingerprint is at hand if its body is large. None: the runtime is going down.
    ///
    /// # Errors
    /// The store did not answer, or the secret in it does not open: nothing can be compared.
    pub(crate) async fn of(
        key: RecordKey,
        protection: Arc<Protection>,
        config: Arc<Config>,
        parts: Parts,
        body: Bytes,
    ) -> Result<Option<Self>, StoreError> {
        let recipe = config.engine.keyed_recipe(&protection.recipe).await?;
        let mut hashing = Self { key, protection, recipe, config, parts, body, made: None };
        if hashing.body.len() <= LARGE {
            return Ok(Some(hashing));
        }
        let Ok(_turn) = TURNS.acquire().await else { return Ok(None) };
        let making = move || {
            // What cannot be made is found out once more, at once.
            hashing.made = hashing.make(&hashing.recipe).ok();
            hashing
        };
        Ok(tokio::task::spawn_blocking(making).await.ok())
    }

    fn make(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        let host = if recipe.counts_host() { (self.config.host_of)(&self.parts) } else { None };
        let request = HttpRequest {
            operation: &self.key.operation,
            method: &self.parts.method,
            path: path(&self.parts),
            query: self.parts.uri.query(),
            host: host.as_deref(),
            headers: &self.parts.headers,
            body: &self.body,
        };
        fingerprint(recipe, self.config.secret.as_deref(), &request)
    }
}

impl Subject for Hashing {
    fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    fn fingerprint_under(&self, recipe: &Recipe) -> Result<Fingerprint, RecipeUnavailable> {
        match self.made {
            Some(made) if std::ptr::eq(recipe, &*self.recipe) => Ok(made),
            _ => self.make(recipe),
        }
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

    fn hashing(members: usize) -> impl Future<Output = Result<Option<Hashing>, StoreError>> {
        let members: Vec<_> = (0..members).map(|member| format!("\"{member}\":[{member}]")).collect();
        let body = format!("{{{}}}", members.join(","));
        let request = Request::post("/payments").header("content-type", "application/json").body(()).unwrap();
        let key = RecordKey::new("tenant", "payments", "key");
        let config = Arc::clone(&IdempotencyLayer::new(MemoryStore::new()).shared);
        Hashing::of(key, Arc::new(Protection::default()), config, request.into_parts().0, body.into())
    }

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[tokio::test]
    async fn a_large_body_is_hashed_on_another_thread_and_comes_to_the_same() {
        let mut large = pin!(hashing(50_000));
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
        let Poll::Ready(Ok(Some(small))) = poll(pin!(hashing(10))) else { panic!("it was handed over") };
        assert_eq!(small.made, None);
        assert!(small.fingerprint_under(&small.recipe).is_ok());
    }
}
