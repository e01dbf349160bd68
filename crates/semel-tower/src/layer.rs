//! The layer: how an application configures its protection.

use crate::body::{Body, BodyBudget};
use crate::contract::Described;
use crate::protection::{InvalidProtection, Protection, ValidProtection};
use crate::published::ContractService;
use crate::replay_check::ReplayCheck;
use crate::responses::Decided;
use crate::service::Idempotency;
use crate::state::{LayerState, Protected, Select, path};
use crate::tenant::{TenantLookup, TenantSource};
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use semel::fingerprint::FingerprintSecret;
use semel::key::KeyRules;
use semel::problem::{DocsBase, Format, Profile};
use semel::seal::Keyring;
use semel::{Decision, Engine, EngineOptions, Store};
use std::borrow::Cow;
use std::sync::Arc;

/// Protects a service: every POST and PATCH with an `Idempotency-Key` happens once.
///
/// `IdempotencyLayer::new(store)` is safe as it stands: the key is required on POST and PATCH, other methods pass untouched,
/// tenants are distinguished by their credential, and an outcome that cannot be known is reported as unknown.
#[derive(Clone)]
pub struct IdempotencyLayer {
    pub(crate) shared: Arc<LayerState>,
}

impl IdempotencyLayer {
    /// Protects by `store`, with defaults that are safe as they stand.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::with_engine(Engine::new(store))
    }

    /// Protects by `store`, and seals stored answers before they reach it: see [`semel::seal`]. An engine that several layers share
    /// gets its keys by [`EngineOptions::keyring`].
    #[must_use]
    pub fn sealed(store: impl Store, keyring: Keyring) -> Self {
        let options = EngineOptions { keyring: Some(keyring), ..EngineOptions::default() };
        Self::with_engine(Engine::with_options(Arc::new(store), options))
    }

    /// Protects by an engine that others may use too. The layer changes nothing about it.
    #[must_use]
    pub fn with_engine(engine: Engine) -> Self {
        let state = LayerState {
            engine,
            tenants: TenantLookup::default(),
            replay_check: None,
            select: select_writes(ValidProtection::default()),
            host_of: Arc::new(host),
            described: vec![Described::writes(ValidProtection::default())],
            key_rules: KeyRules::default(),
            has_own_key_rules: false,
            profile: Profile::default(),
            format: Format::default(),
            docs: DocsBase::default(),
            secret: None,
            body_budget: BodyBudget::default(),
        };
        Self { shared: Arc::new(state) }
    }

    /// Finds the tenant of a request: account, merchant or user, as the application authenticated it. A request for which it
    /// is `None` is refused with 401.
    ///
    /// Without this, it is the [`Tenant`](crate::Tenant) extension if there is one, else the caller's credential, hashed: a
    /// refreshed bearer token is another tenant then.
    #[must_use]
    pub fn tenant(self, of: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|state| state.tenants = TenantLookup::Told(Arc::new(of)))
    }

    /// Finds the tenant of a request by these sources: the first one that finds anything in it decides. A request in which
    /// none finds anything, or in which what is found cannot be believed, is refused with 401.
    #[must_use]
    pub fn tenant_from(self, sources: impl IntoIterator<Item = Arc<dyn TenantSource>>) -> Self {
        self.with(|state| state.tenants = TenantLookup::Sources(sources.into_iter().collect()))
    }

    /// Asks before every replay whether the caller may still have the answer.
    ///
    /// Without this, a credential that was revoked gets replays until the window is over: the service, which would refuse it, is not asked.
    ///
    /// ```
    /// # use semel_tower::{IdempotencyLayer, ReplayCheck, ReplayCheckFuture, ReplayVerdict};
    /// struct Sessions;
    /// # impl Sessions { async fn is_valid(&self, _: Option<&http::HeaderValue>) -> bool { true } }
    ///
    /// impl ReplayCheck for Sessions {
    ///     fn check<'a>(&'a self, request: &'a http::request::Parts) -> ReplayCheckFuture<'a> {
    ///         Box::pin(async move {
    ///             match self.is_valid(request.headers.get("authorization")).await {
    ///                 true => ReplayVerdict::Allowed,
    ///                 false => ReplayVerdict::Refused { challenges: Vec::new() },
    ///             }
    ///         })
    ///     }
    /// }
    /// # fn layer(layer: IdempotencyLayer) -> IdempotencyLayer {
    /// layer.replay_check(Sessions)
    /// # }
    /// ```
    #[must_use]
    pub fn replay_check(self, check: impl ReplayCheck + 'static) -> Self {
        self.with(|state| state.replay_check = Some(Arc::new(check)))
    }

    /// Protects every POST and PATCH like this. The operation is the method and the matched route (without axum: the path).
    ///
    /// # Errors
    /// The protection cannot keep its promise.
    pub fn protect_writes(self, protection: Protection) -> Result<Self, InvalidProtection> {
        let protection: ValidProtection = protection.try_into()?;
        Ok(self.with(|state| {
            state.described = vec![Described::writes(protection.clone())];
            state.select = select_writes(protection);
        }))
    }

    /// Protects the requests that `select` names an operation for; others pass untouched. GET, HEAD, PUT, DELETE and OPTIONS are
    /// idempotent by themselves and are better left alone.
    ///
    /// ```
    /// # use semel_tower::{IdempotencyLayer, InvalidProtection, Protection, ValidProtection};
    /// # fn layer(layer: IdempotencyLayer) -> Result<IdempotencyLayer, InvalidProtection> {
    /// let payments = ValidProtection::try_from(Protection::default())?;
    /// Ok(layer.protect(move |request| {
    ///     (request.uri.path() == "/payments").then(|| ("create_payment".to_owned(), payments.clone()))
    /// }))
    /// # }
    /// ```
    #[must_use]
    pub fn protect(self, select: impl Fn(&Parts) -> Option<Protected> + Send + Sync + 'static) -> Self {
        self.with(|state| {
            state.described = Vec::new();
            state.select = Arc::new(select);
        })
    }

    /// Tells of an operation in the contract: how [`protect`](Self::protect) protects it, whose rules nobody else can know. What
    /// [`protect_writes`](Self::protect_writes) protects is told of as it is.
    #[must_use]
    pub fn describe(
        self,
        operation: impl Into<String>,
        method: Method,
        path: impl Into<String>,
        protection: ValidProtection,
    ) -> Self {
        let described = Described::operation(operation.into(), method, path.into(), protection);
        self.with(|state| state.described.push(described))
    }

    /// The contract as a service, to be mounted where the application likes: as JSON, or as a page for browsers. Unless problem documents
    /// link elsewhere ([`docs`](Self::docs)), the layer also answers with it at `/.well-known/idempotency`.
    ///
    /// ```
    /// # use semel_tower::IdempotencyLayer;
    /// # use semel::problem::DocsBase;
    /// # fn app(layer: IdempotencyLayer) -> Result<axum::Router, Box<dyn std::error::Error>> {
    /// let layer = layer.docs(DocsBase::new("/idempotency#")?);
    /// Ok(axum::Router::new().route_service("/idempotency", layer.contract_service()).layer(layer))
    /// # }
    /// ```
    #[must_use]
    pub fn contract_service(&self) -> ContractService {
        ContractService::of(Arc::clone(&self.shared))
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
        self.with(|state| state.host_of = Arc::new(of))
    }

    /// Which spellings of a key are taken, and how long it may be. Default: as the [profile](Self::profile) has it.
    #[must_use]
    pub fn key_rules(self, rules: KeyRules) -> Self {
        self.with(|state| (state.key_rules, state.has_own_key_rules) = (rules, true))
    }

    /// How refusals look: status, headers and body; and how long keys are and which characters they have, unless [`key_rules`](Self::key_rules) says so. Default: as the
    /// IETF draft has it, with problem documents.
    #[must_use]
    pub fn profile(self, format: impl Into<Format>) -> Self {
        let format = format.into();
        self.with(|state| {
            if !state.has_own_key_rules {
                state.key_rules.min = format.profile().min_key_length();
                state.key_rules.form = format.profile().key_form();
            }
            (state.profile, state.format) = (format.profile(), format);
        })
    }

    /// Where the problem codes are explained to clients.
    #[must_use]
    pub fn docs(self, base: DocsBase) -> Self {
        self.with(|state| state.docs = base)
    }

    /// The secret of the recipes that were built with one.
    #[must_use]
    pub fn fingerprint_secret(self, secret: FingerprintSecret) -> Self {
        self.with(|state| state.secret = Some(Arc::new(secret)))
    }

    /// What large bodies may take of the memory. Layers can share it.
    #[must_use]
    pub fn body_budget(self, memory: BodyBudget) -> Self {
        self.with(|state| state.body_budget = memory)
    }

    /// What the layer answers where this was decided: the response itself, as a client gets it. `None`: it would execute. For tools that show
    /// what a client will get, by [`Engine::forecast`].
    #[must_use]
    pub fn answer(&self, decision: Decision, protection: &Protection) -> Option<Response<Body>> {
        match self.shared.decided(decision, protection, &HeaderMap::new()) {
            Decided::Answer(response) => Some(response),
            Decided::Execute(_) => None,
        }
    }

    /// The engine, for watching and draining.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    fn with(mut self, change: impl FnOnce(&mut LayerState)) -> Self {
        change(Arc::make_mut(&mut self.shared));
        self
    }
}

impl<S> tower::Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency::new(inner, Arc::clone(&self.shared))
    }
}

fn select_writes(protection: ValidProtection) -> Select {
    Arc::new(move |parts| {
        matches!(parts.method, Method::POST | Method::PATCH)
            .then(|| (operation_name(parts), protection.clone()))
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
