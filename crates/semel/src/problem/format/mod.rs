//! How refusals look: status, headers and body, by the profile in force or by a template of the user's own.
//!
//! - `refusal.rs`: what every refusal says, whatever its format;
//! - `bodies.rs`: the bodies of the built-in profiles;
//! - `template.rs`: bodies that a configuration describes;
//! - `moment.rs`: times as RFC 3339 has them.

mod bodies;
mod moment;
mod refusal;
mod template;
#[cfg(test)]
mod tests;

pub use template::{Template, TemplateError};

use super::{Code, DocsBase, PlainProblem, Problem, Profile, whole_seconds};
use crate::OperationId;
use crate::headers::REQUEST_ID;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use refusal::Refusal;
use std::sync::Arc;

/// Tells Stripe's libraries whether to send the request again by themselves.
const STRIPE_SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");

/// How refusals look.
///
/// ```
/// use semel::problem::{Code, DocsBase, Format, Problem, Profile};
///
/// let format = Format::of(Profile::Stripe);
/// let problem = Problem::new(Code::KeyReused, Profile::Stripe, "This key stands for another request.");
/// let response = format.problem(&problem, &DocsBase::default());
/// assert_eq!(response.status(), 400);
/// assert_eq!(response.headers()["stripe-should-retry"], "false");
/// assert!(response.body().starts_with(br#"{"error":{"type":"idempotency_error""#));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Format {
    profile: Profile,
    own: Option<Arc<Own>>,
}

/// What a profile of the user's own changes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    name: String,
    statuses: Vec<(Code, StatusCode)>,
    content_type: Option<HeaderValue>,
    body: Option<Template>,
}

impl Format {
    /// The format of a built-in profile.
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        Self { profile, own: None }
    }

    /// A format of the user's own, by another name.
    #[must_use]
    pub fn named(profile: Profile, name: impl Into<String>) -> Self {
        let own = Own { name: name.into(), statuses: Vec::new(), content_type: None, body: None };
        Self { profile, own: Some(Arc::new(own)) }
    }

    /// Answers a code with this status, in place of the profile's.
    #[must_use]
    pub fn with_status(self, code: Code, status: StatusCode) -> Self {
        self.change(|own| own.statuses.push((code, status)))
    }

    /// Labels bodies so, in place of the profile's content type (`application/json`, where there is a template).
    #[must_use]
    pub fn with_content_type(self, content_type: HeaderValue) -> Self {
        self.change(|own| own.content_type = Some(content_type))
    }

    /// Makes bodies by this template.
    #[must_use]
    pub fn with_body(self, template: Template) -> Self {
        self.change(|own| own.body = Some(template))
    }

    fn change(mut self, change: impl FnOnce(&mut Own)) -> Self {
        if self.own.is_none() {
            self = Self::named(self.profile, self.profile.as_str());
        }
        if let Some(own) = &mut self.own {
            change(Arc::make_mut(own));
        }
        self
    }

    /// The built-in profile that it is, or that it extends.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.profile
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.own.as_ref().map_or(self.profile.as_str(), |own| &own.name)
    }

    /// The status that goes with a code.
    #[must_use]
    pub fn status(&self, code: Code) -> StatusCode {
        self.own
            .as_ref()
            .and_then(|own| own.statuses.iter().rev().find(|(of, _)| *of == code))
            .map_or(code.status(self.profile), |(_, status)| *status)
    }

    /// The content type of refusals.
    #[must_use]
    pub fn content_type(&self) -> HeaderValue {
        match self.own.as_deref() {
            Some(Own { content_type: Some(own), .. }) => own.clone(),
            Some(Own { body: Some(_), .. }) => HeaderValue::from_static("application/json"),
            _ if self.profile == Profile::Ietf => HeaderValue::from_static("application/problem+json"),
            _ => HeaderValue::from_static("application/json"),
        }
    }

    /// A problem as clients get it.
    ///
    /// It carries `Cache-Control: no-store`: each of these answers is about one moment of one key, and a cache that kept
    /// it would keep a client from learning the outcome.
    #[must_use]
    pub fn problem(&self, problem: &Problem, docs: &DocsBase) -> Response<Bytes> {
        let status = match problem.status == problem.code.status(self.profile) {
            true => self.status(problem.code),
            // A case of its own, such as the first request that ended in doubt.
            false => self.profile.permitted(problem.status),
        };
        let page = docs.page(problem.code);
        let mut response = self.response(&Refusal::coded(problem, status, &page));
        // Never an error: `DocsBase` holds visible ASCII alone, and so do the codes.
        if let Ok(link) = HeaderValue::try_from(format!(r#"<{page}>; rel="describedby""#)) {
            response.headers_mut().insert(LINK, link);
        }
        if let Some(wait) = problem.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        response
    }

    /// A problem without a code, as clients get it.
    #[must_use]
    pub fn plain(&self, problem: &PlainProblem) -> Response<Bytes> {
        self.response(&Refusal::plain(problem, self.profile.permitted(problem.status)))
    }

    /// Whether clients get the `context` of their request's JSON body back in refusals.
    #[must_use]
    pub fn echoes_context(&self) -> bool {
        self.profile == Profile::Adcp && self.own.as_ref().is_none_or(|own| own.body.is_none())
    }

    /// A refusal's body with the `context` of the request's JSON body, a JSON text that goes back as it is; `None` where clients of the
    /// profile get none.
    #[must_use]
    pub fn in_context(&self, refusal: &[u8], context: &str) -> Option<Bytes> {
        let members = refusal.strip_suffix(b"}").filter(|_| self.echoes_context())?;
        Some([members, b",\"context\":", context.as_bytes(), b"}"].concat().into())
    }

    /// The body that a template or the profile makes of one refusal; an example for the contract.
    #[must_use]
    pub fn example(&self, code: Code, detail: &str, docs: &DocsBase) -> Bytes {
        self.problem(&Problem::new(code, self.profile, detail), docs).into_body()
    }

    fn response(&self, refusal: &Refusal<'_>) -> Response<Bytes> {
        let body = match self.own.as_ref().and_then(|own| own.body.as_ref()) {
            Some(template) => template.render(refusal),
            None => bodies::body(self.profile, refusal),
        };
        let mut response = Response::new(body);
        *response.status_mut() = refusal.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.content_type());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.profile == Profile::Stripe {
            let should_retry = if refusal.retryable { "true" } else { "false" };
            headers.insert(STRIPE_SHOULD_RETRY, HeaderValue::from_static(should_retry));
            if let Ok(id) = HeaderValue::try_from(format!("req_{}", OperationId::random())) {
                headers.insert(REQUEST_ID, id);
            }
        }
        response
    }
}

impl From<Profile> for Format {
    fn from(profile: Profile) -> Self {
        Self::of(profile)
    }
}
