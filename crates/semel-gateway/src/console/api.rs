//! The admin API, asked inside the process: the console shows what the API tells its user, and nothing else.

use super::strangers::harmless;
use super::visitor::Visitor;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::response::Response;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::Service as _;

/// An answer at most: a page of a thousand operations, or an event with its payload.
const LONGEST: usize = 32 << 20;

/// The routes of the admin API.
#[derive(Clone)]
pub(super) struct Api {
    router: Router,
}

/// Why the API did not do it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) code: String,
    /// In a sentence, without what cannot be seen.
    pub(super) detail: String,
}

impl Refused {
    /// Whether the store did not answer, so that what was known before is the best there is.
    pub(super) fn is_outage(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    pub(super) fn unreadable() -> Self {
        Self {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            code: "console_unreadable".into(),
            detail: "The console cannot read the admin API's answer.".into(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
}

impl Api {
    pub(super) fn new(router: Router) -> Self {
        Self { router }
    }

    /// What the API answers to a GET, with everything in it made harmless.
    pub(super) async fn get(&self, visitor: &Visitor, target: &str) -> Result<Value, Refused> {
        let response = self.call(visitor, Method::GET, target, Body::empty()).await;
        let (status, body) = read(response).await?;
        if status.is_success() {
            return serde_json::from_slice(&body).map(harmless).map_err(|_| Refused::unreadable());
        }
        let problem: Problem = serde_json::from_slice(&body).unwrap_or_default();
        Err(Refused { status, code: problem.code, detail: crate::escape::escape(&problem.detail) })
    }

    /// The same, in a shape.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        visitor: &Visitor,
        target: &str,
    ) -> Result<T, Refused> {
        let value = self.get(visitor, target).await?;
        serde_json::from_value(value).map_err(|error| {
            tracing::error!(%error, target, "the console cannot read the admin API's answer");
            Refused::unreadable()
        })
    }

    /// The text that the API answers; `None`: it refused.
    pub(super) async fn text(&self, visitor: &Visitor, target: &str) -> Option<String> {
        let response = self.call(visitor, Method::GET, target, Body::empty()).await;
        let (status, body) = read(response).await.ok()?;
        status.is_success().then(|| String::from_utf8_lossy(&body).into_owned())
    }

    /// The API's own answer: a file.
    pub(super) async fn passed_on(&self, visitor: &Visitor, target: &str) -> Response {
        self.call(visitor, Method::GET, target, Body::empty()).await
    }

    async fn call(&self, visitor: &Visitor, method: Method, target: &str, body: Body) -> Response {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        // Made of what was percent-encoded; what were none would be answered with 404.
        *request.uri_mut() = target.parse().unwrap_or_default();
        // Not all that came with the visitor's request: the API does not know the parameters of the console's paths.
        request.extensions_mut().insert(visitor.operator());
        let mut router = self.router.clone();
        match router.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

async fn read(response: Response) -> Result<(StatusCode, axum::body::Bytes), Refused> {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, LONGEST).await.map_err(|_| Refused::unreadable())?;
    Ok((parts.status, body))
}
