//! The contract, for people and for programs: at `/.well-known/idempotency`, where problem documents link to, or wherever an application
//! mounts it.

use crate::body::Body;
use crate::contract::texts;
use crate::state::{LayerState, path};
use crate::tenant::TenantLookup;
use bytes::Bytes;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use semel::headers::IDEMPOTENCY_KEY;
use semel::key::{KeySource, KeySources};
use semel::problem::{Code, DocsBase};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

const PATH: &str = "/.well-known/idempotency";

impl LayerState {
    /// The page, if that is what is asked for, and problem documents link there.
    pub(crate) fn published(&self, parts: &Parts) -> Option<Response<Body>> {
        let is_asked_for = matches!(parts.method, Method::GET | Method::HEAD) && path(parts) == PATH;
        if !is_asked_for || self.docs != DocsBase::default() {
            return None;
        }
        Some(self.answer(parts))
    }

    fn answer(&self, parts: &Parts) -> Response<Body> {
        let is_browser = parts.headers.get_all(ACCEPT).iter().any(|accepted| {
            accepted.to_str().is_ok_and(|accepted| accepted.to_ascii_lowercase().contains("text/html"))
        });
        let (text, kind) = match is_browser {
            true => (self.page(), "text/html; charset=utf-8"),
            false => (format!("{:#}\n", self.contract()), "application/json"),
        };
        let text = if parts.method == Method::HEAD { String::new() } else { text };
        let mut response = Response::new(Body::from(Bytes::from(text)));
        let headers = response.headers_mut();
        for (name, value) in [
            (CONTENT_TYPE, kind),
            (VARY, "Accept"),
            (CACHE_CONTROL, "public, max-age=60"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    fn page(&self) -> String {
        let (min, max) = (self.key_rules.min, self.key_rules.max);
        let errors: String = Code::ALL
            .map(|code| {
                let status = self.format.status(code).as_u16();
                let again = match code.retryable() {
                    true => "may be sent again as it is",
                    false => "do not retry unchanged",
                };
                format!(
                    "<section id=\"{code}\">\n<h2><code>{code}</code></h2>\n<p>{}: {status}; {again}</p>\n<p>{}</p>\n</section>\n",
                    code.title(),
                    code.explanation()
                )
            })
            .concat();
        let tenant = self.tenant_rules().join(" ");
        let place = |source: &KeySource| match source {
            KeySource::Header(name) if *name == IDEMPOTENCY_KEY => "<code>Idempotency-Key</code>".to_owned(),
            KeySource::Header(name) => format!("<code>{name}</code>"),
            KeySource::Json(pointer) => {
                format!("the string at <code>{}</code> in the JSON body", escaped(&pointer.to_string()))
            }
        };
        let places = self.key_sources().iter().map(place).collect::<Vec<_>>().join(", or as ");
        let refusal = escaped(&self.example());
        // Names and paths may hold what means something in HTML, and so do quotes in JSON.
        let operations = escaped(&format!("{:#}", self.contract()["operations"]));
        let operations = format!("<h2>Operations</h2>\n<pre>{operations}</pre>\n");
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Idempotency keys of this API</title>\n\
             </head>\n<body>\n<h1>Retry anything; it happens once.</h1>\n<p>Send one key for each operation as \
             {places}, {min} to {max} characters, and the same key with every retry. A retry gets the answer \
             of the first request.</p>\n<p>{tenant}</p>\n{operations}<h2>Refusals</h2>\n<pre>{refusal}</pre>\n{errors}</body>\n</html>\n"
        )
    }
}

impl LayerState {
    fn contract(&self) -> Value {
        let error = |code: Code| {
            json!({
                "code": code.as_str(),
                "type": self.docs.page(code),
                "title": code.title(),
                "status": self.format.status(code).as_u16(),
                "retryable": code.retryable(),
                "safe_new_key": code.safe_new_key(),
                "explanation": code.explanation(),
            })
        };
        let sources = self.key_sources();
        json!({
            "contract_version": 1,
            "profile": self.format.name(),
            "format": {
                "based_on": self.format.profile().as_str(),
                "content_type": String::from_utf8_lossy(self.format.content_type().as_bytes()).into_owned(),
                "example": self.example(),
            },
            "key": {
                "sources": texts(&sources),
                "header": sources.headers().next().map(|name| name.as_str().to_owned()),
                "min_length": self.key_rules.min,
                "max_length": self.key_rules.max,
                "characters": self.key_rules.form.in_words(),
            },
            "tenant": { "rules": self.tenant_rules() },
            "replay": { "header": "Idempotent-Replayed", "value": "true", "operation_id_header": "Semel-Operation-Id" },
            "operations": self.described.iter().map(|described| described.document(&sources)).collect::<Vec<_>>(),
            "errors": Code::ALL.map(error),
        })
    }

    /// Where the keys of most operations are looked for: of those that are described, of the first one.
    fn key_sources(&self) -> KeySources {
        self.described.first().map_or_else(KeySources::default, |described| described.key_sources().clone())
    }

    /// A refusal as clients get it.
    fn example(&self) -> String {
        let detail = "This key was already used for a different request.";
        String::from_utf8_lossy(&self.format.example(Code::KeyReused, detail, &self.docs)).into_owned()
    }

    /// Whose key it is, in sentences.
    fn tenant_rules(&self) -> Vec<&'static str> {
        let mut rules = match self.tenants {
            TenantLookup::ExtensionOrCredential => vec![
                "A key belongs to the account that your request was authenticated as, or else to the credential that it is sent with \
                 (Authorization, X-Api-Key).",
                "Where it is the credential, a refreshed bearer token is another tenant: a retry with it executes again.",
            ],
            TenantLookup::Told(_) | TenantLookup::Sources(_) => vec![
                "A key belongs to the account that your request was authenticated as, whatever token was used.",
                "A request that cannot be attributed to a caller gets 401 idempotency_scope_unresolved.",
            ],
        };
        if self.replay_check.is_some() {
            rules.push(
                "Before every replay it is checked that the credential is still accepted; one that was revoked gets 401.",
            );
        }
        rules
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Answers with the contract of a layer, at whatever path it is mounted. Made by
/// [`IdempotencyLayer::contract_service`](crate::IdempotencyLayer::contract_service).
#[derive(Clone)]
pub struct ContractService {
    state: Arc<LayerState>,
}

impl ContractService {
    pub(crate) fn of(state: Arc<LayerState>) -> Self {
        Self { state }
    }
}

impl<B> Service<Request<B>> for ContractService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, _) = request.into_parts();
        let answer = match parts.method {
            Method::GET | Method::HEAD => self.state.answer(&parts),
            _ => {
                let mut refusal = Response::new(Body::empty());
                *refusal.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                refusal
            }
        };
        ready(Ok(answer))
    }
}
