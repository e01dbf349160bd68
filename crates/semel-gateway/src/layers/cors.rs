//! Lets pages of other origins use the API from a browser: answers preflights, and says in every answer which page may read it.
//!
//! With `[cors]` the gateway alone decides. What the service says of it is replaced, in refusals and replays as in first answers, so that
//! a retry can be read by the page that sends it.

use super::future::{Answered, MaybeAnswered};
use crate::config::{AllowedOrigins, Config, CorsConfig};
use crate::headers::remove_all;
use crate::listener::{AcceptedRequest, AnswerBody};
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE, ETAG, LINK, LOCATION, ORIGIN, RETRY_AFTER,
    VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use pin_project_lite::pin_project;
use semel::headers::{
    IDEMPOTENCY_KEY_EXPIRES, IDEMPOTENT_REPLAYED, OPERATION_ID, ORIGINAL_REQUEST, ORIGINAL_REQUEST_ID,
    REQUEST_ID,
};
use semel::problem::Profile;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower::{Layer, Service};

/// What a page may read of an answer, besides what browsers show anyway.
const EXPOSED: [HeaderName; 8] = [
    IDEMPOTENT_REPLAYED,
    OPERATION_ID,
    RETRY_AFTER,
    LOCATION,
    ETAG,
    LINK,
    IDEMPOTENCY_KEY_EXPIRES,
    ORIGINAL_REQUEST_ID,
];

/// What pages that follow Stripe read besides.
const EXPOSED_BY_STRIPE: [HeaderName; 2] = [REQUEST_ID, ORIGINAL_REQUEST];

/// Which pages may do what, as header fields.
#[derive(Debug)]
pub(crate) struct CorsRules {
    origins: AllowedOrigins,
    credentials: bool,
    /// What every answer to an allowed page has.
    exposed: HeaderValue,
    /// What the answer to a preflight has besides.
    preflight: [(HeaderName, HeaderValue); 3],
}

impl CorsRules {
    /// The rules of a configuration; `None` without `[cors]`: then the service answers for itself.
    pub(crate) fn of(config: &Config) -> Option<Arc<Self>> {
        let CorsConfig { origins, methods, headers, credentials, max_age } = config.cors.as_ref()?;
        let methods = methods.clone().unwrap_or_else(|| methods_of(config));
        let headers = headers.clone().unwrap_or_else(|| {
            let mut headers = vec![CONTENT_TYPE, AUTHORIZATION];
            headers.extend(config.routes.key_headers());
            headers
        });
        let mut exposed = EXPOSED.to_vec();
        if config.profile.profile() == Profile::Stripe {
            exposed.extend(EXPOSED_BY_STRIPE);
        }
        Some(Arc::new(Self {
            origins: origins.clone(),
            credentials: *credentials,
            exposed: list(exposed.iter().map(HeaderName::as_str)),
            preflight: [
                (ACCESS_CONTROL_ALLOW_METHODS, list(methods.iter().map(Method::as_str))),
                (ACCESS_CONTROL_ALLOW_HEADERS, list(headers.iter().map(HeaderName::as_str))),
                (ACCESS_CONTROL_MAX_AGE, HeaderValue::from(max_age.as_secs())),
            ],
        }))
    }

    /// What `Access-Control-Allow-Origin` says to the page that a request comes from.
    fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (Some(origin), None) = (origins.next(), origins.next()) else { return None };
        match &self.origins {
            AllowedOrigins::Any => Some(HeaderValue::from_static("*")),
            AllowedOrigins::Listed(listed) => {
                listed.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
            }
        }
    }

    fn mark(&self, allowed: Option<HeaderValue>, headers: &mut HeaderMap) {
        remove_all(headers, |name| name.as_str().starts_with("access-control-"));
        vary_by_origin(headers);
        if let Some(origin) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
            if self.credentials {
                headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
            }
        }
    }

    fn preflight(&self, allowed: Option<HeaderValue>) -> Response<Bytes> {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let is_allowed = allowed.is_some();
        self.mark(allowed, answer.headers_mut());
        answer.headers_mut().remove(ACCESS_CONTROL_EXPOSE_HEADERS);
        if is_allowed {
            answer.headers_mut().extend(self.preflight.clone());
        }
        answer
    }
}

/// Those that are protected, and those that only read.
fn methods_of(config: &Config) -> Vec<Method> {
    let mut methods = vec![Method::GET, Method::HEAD];
    match config.routes.for_all() {
        Some(_) => methods.extend([Method::POST, Method::PATCH]),
        None => {
            for route in config.routes.routes() {
                if !methods.contains(route.pattern.method()) {
                    methods.push(route.pattern.method().clone());
                }
            }
        }
    }
    methods
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> HeaderValue {
    let names: Vec<_> = names.collect();
    // Methods and names of headers are tokens, which every value may hold.
    HeaderValue::try_from(names.join(", ")).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A cache must not give one page's answer to another, not even an answer without CORS headers.
fn vary_by_origin(headers: &mut HeaderMap) {
    let varies = headers.get_all(VARY).iter().flat_map(|value| value.as_bytes().split(|&byte| byte == b','));
    let mut names = varies.map(<[u8]>::trim_ascii);
    if !names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"origin")) {
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts.headers.contains_key(ORIGIN)
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Lets pages of other origins use the API.
#[derive(Clone)]
pub(crate) struct CorsLayer {
    rules: Option<Arc<CorsRules>>,
}

impl CorsLayer {
    pub(crate) fn new(rules: Option<Arc<CorsRules>>) -> Self {
        Self { rules }
    }
}

impl<S> Layer<S> for CorsLayer {
    type Service = Cors<S>;

    fn layer(&self, inner: S) -> Cors<S> {
        Cors { inner, rules: self.rules.clone() }
    }
}

/// Made by [`CorsLayer`].
#[derive(Clone)]
pub(crate) struct Cors<S> {
    inner: S,
    rules: Option<Arc<CorsRules>>,
}

impl<S> Service<AcceptedRequest> for Cors<S>
where
    S: Service<AcceptedRequest, Response = Response<AnswerBody>, Error = Infallible>,
{
    type Response = Response<AnswerBody>;
    type Error = Infallible;
    type Future = MaybeAnswered<Marking<S::Future>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, accepted: AcceptedRequest) -> Self::Future {
        let mut marks = None;
        if let Some(rules) = &self.rules {
            let allowed = rules.allowed(&accepted.parts.headers);
            if is_preflight(&accepted.parts) {
                let answer = rules.preflight(allowed);
                return MaybeAnswered::here(accepted.answer(answer));
            }
            marks = Some((Arc::clone(rules), allowed));
        }
        MaybeAnswered::passed_on(Marking { answer: self.inner.call(accepted), marks })
    }
}

pin_project! {
    /// Waits for the answer.
    pub(crate) struct Marking<F> {
        #[pin]
        answer: F,
        marks: Option<(Arc<CorsRules>, Option<HeaderValue>)>,
    }
}

impl<F: Future<Output = Answered>> Future for Marking<F> {
    type Output = Answered;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answered> {
        let this = self.project();
        let Ok(mut answer) = ready!(this.answer.poll(context));
        if let Some((rules, allowed)) = this.marks.take() {
            rules.mark(allowed, answer.headers_mut());
        }
        Poll::Ready(Ok(answer))
    }
}
