//! The layer: how an application configures its protection.

use crate::memory::BodyMemory;
use crate::protection::{InvalidProtection, Protection};
use crate::scope::Scope;
use crate::service::Idempotency;
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use semel::fingerprint::FingerprintSecret;
use semel::key::KeyRules;
use semel::problem::{DocsBase, Profile};
use semel::seal::Keyring;
use semel::{Engine, OperationId, Store};
use std::borrow::Cow;
use std::sync::Arc;

/// Protects a service: every POST and PATCH with an `Idempotency-Key` happens once.
///
/// `IdempotencyLayer::new(store)` is safe as it stands: the key is compulsory on POST and PATCH, other methods pass untouched,
/// tenants are told apart by their credential, and an outcome that cannot be known is said to be unknown.
#[derive(Clone)]
pub struct IdempotencyLayer {
    pub(crate) shared: Arc<Config>,
}

/// A request that is to be protected: the operation's name, and how.
pub type Protected = (String, Arc<Protection>);

type Select = Arc<dyn Fn(&Parts) -> Option<Protected> + Send + Sync>;

type HostOf = Arc<dyn for<'a> Fn(&'a Parts) -> Option<Cow<'a, [u8]>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) engine: Engine,
    pub(crate) scope: Scope,
    pub(crate) select: Select,
    pub(crate) host_of: HostOf,
    pub(crate) key_rules: KeyRules,
    pub(crate) profile: Profile,
    pub(crate) docs: DocsBase,
    pub(crate) secret: Option<Arc<FingerprintSecret>>,
    pub(crate) memory: BodyMemory,
}

impl IdempotencyLayer {
    /// Protects by `store`, with defaults that are safe as they stand.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::over(Engine::new(store))
    }

    /// Protects by an engine that others use too.
    #[must_use]
    pub fn over(engine: Engine) -> Self {
        let config = Config {
            engine,
            scope: Scope::default(),
            select: select_writes(Protection::default()),
            host_of: Arc::new(host),
            key_rules: KeyRules::default(),
            profile: Profile::default(),
            docs: DocsBase::default(),
            secret: None,
            memory: BodyMemory::default(),
        };
        Self { shared: Arc::new(config) }
    }

    /// Finds the tenant of a request: account, merchant or user, as the application authenticated it. A request for which it
    /// is `None` is refused with 401.
    ///
    /// Without this, it is the [`Tenant`](crate::Tenant) extension if there is one, else the caller's credential, hashed: a
    /// refreshed bearer token is another tenant then.
    #[must_use]
    pub fn tenant(self, of: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|config| config.scope = Scope::Told(Arc::new(of)))
    }

    /// Protects every POST and PATCH like this. The operation is the method and the matched route (without axum: the path).
    ///
    /// # Errors
    /// The protection cannot keep its promise.
    pub fn protect_writes(self, protection: Protection) -> Result<Self, InvalidProtection> {
        protection.check()?;
        Ok(self.with(|config| config.select = select_writes(protection)))
    }

    /// Protects the requests that `select` names an operation for; others pass untouched. [`Protection::check`] what you hand
    /// out. GET, HEAD, PUT, DELETE and OPTIONS are idempotent by themselves and are better left alone.
    #[must_use]
    pub fn protect(self, select: impl Fn(&Parts) -> Option<Protected> + Send + Sync + 'static) -> Self {
        self.with(|config| config.select = Arc::new(select))
    }

    /// Finds the host that the client asked for, for recipes that count it ([`RecipeBuilder::host`](semel::fingerprint::RecipeBuilder::host)):
    /// behind a proxy, what that says of it. Several values are joined by commas.
    ///
    /// Without this it is the request target's host, else the `Host` header.
    #[must_use]
    pub fn host_from(
        self,
        of: impl for<'a> Fn(&'a Parts) -> Option<Cow<'a, [u8]>> + Send + Sync + 'static,
    ) -> Self {
        self.with(|config| config.host_of = Arc::new(of))
    }

    /// Which spellings of a key are taken, and how long it may be.
    #[must_use]
    pub fn key_rules(self, rules: KeyRules) -> Self {
        self.with(|config| config.key_rules = rules)
    }

    /// Which status codes problems have. Default: those of the IETF draft.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        self.with(|config| config.profile = profile)
    }

    /// Where the problem codes are explained to clients.
    #[must_use]
    pub fn docs(self, base: DocsBase) -> Self {
        self.with(|config| config.docs = base)
    }

    /// The secret of the recipes that were built with one.
    #[must_use]
    pub fn fingerprint_secret(self, secret: FingerprintSecret) -> Self {
        self.with(|config| config.secret = Some(Arc::new(secret)))
    }

    /// What large bodies may take of the memory. Layers can share it.
    #[must_use]
    pub fn body_memory(self, memory: BodyMemory) -> Self {
        self.with(|config| config.memory = memory)
    }

    /// Seals what is kept of answers before it reaches the store: see [`semel::seal`]. It is the engine that seals, for everybody who
    /// uses it.
    #[must_use]
    pub fn seal(self, keyring: Keyring) -> Self {
        self.shared.engine.set_keyring(Some(keyring));
        self
    }

    /// The engine, for watching and draining.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }
}

impl Config {
    /// Whether nothing is open about an operation any more: it has a final state, or was released.
    pub(crate) async fn has_ended(&self, id: OperationId) -> bool {
        match self.engine.store().find(vec![id]).await {
            Ok(answer) => answer.items.iter().flatten().all(|record| record.state.is_final()),
            Err(_) => false,
        }
    }
}

impl<S> tower::Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency::new(inner, Arc::clone(&self.shared))
    }
}

fn select_writes(protection: Protection) -> Select {
    let protection = Arc::new(protection);
    Arc::new(move |parts| {
        matches!(parts.method, Method::POST | Method::PATCH)
            .then(|| (operation_name(parts), Arc::clone(&protection)))
    })
}

/// The method and the route: `POST /payments/{id}/refunds`.
fn operation_name(parts: &Parts) -> String {
    #[cfg(feature = "axum")]
    if let Some(route) = parts.extensions.get::<axum::extract::MatchedPath>() {
        return format!("{} {}", parts.method, route.as_str());
    }
    format!("{} {}", parts.method, path(parts))
}

/// The host that a request is addressed to.
fn host(parts: &Parts) -> Option<Cow<'_, [u8]>> {
    match parts.uri.authority() {
        Some(authority) => {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            Some(Cow::Borrowed(host.as_bytes()))
        }
        None => all_values(&parts.headers, &HOST),
    }
}

/// All values of a header, joined by commas; `None` without one.
#[must_use]
pub fn all_values<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let first = values.next()?;
    Some(match values.next() {
        None => Cow::Borrowed(first),
        Some(second) => Cow::Owned([first, second].into_iter().chain(values).collect::<Vec<_>>().join(&b',')),
    })
}

/// The path as the client has sent it: a router that another one nests is shown the rest of it alone.
pub(crate) fn path(parts: &Parts) -> &str {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::OriginalUri(whole)) = parts.extensions.get() {
        return whole.path();
    }
    parts.uri.path()
}
