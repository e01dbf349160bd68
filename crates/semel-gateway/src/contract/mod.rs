//! The published contract: what clients may rely on, as JSON and as a page.

mod accept;
mod document;
mod page;

use crate::config::Config;
use accept::{Form, preferred};
use bytes::Bytes;
use document::Document;
use http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap,
    HeaderValue, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, Response, StatusCode};

/// Where the contract is published, on the public listener.
pub const PATH: &str = "/.well-known/idempotency";

/// The contract that is in force, ready to be sent.
#[derive(Clone, Debug)]
pub struct Contract {
    json: Bytes,
    page: Bytes,
}

impl Contract {
    /// The contract of a configuration.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let document = Document::of(config);
        // Texts, numbers and lists, written to memory: there is nothing here that can fail.
        let json = serde_json::to_vec_pretty(&document).unwrap_or_default();
        Self { json: json.into(), page: page::page(&document).into() }
    }

    /// The document.
    pub(crate) fn json(&self) -> Bytes {
        self.json.clone()
    }

    /// The answer to a request at [`PATH`], whatever its method.
    #[must_use]
    pub fn respond(&self, method: &Method, headers: &HeaderMap) -> Response<Bytes> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        let mut response = self.in_form(preferred(headers.get_all(ACCEPT).iter().map(HeaderValue::as_bytes)));
        if *method == Method::HEAD {
            *response.body_mut() = Bytes::new();
        }
        response
    }

    /// The answer to a GET with this `Accept`.
    #[must_use]
    pub fn answer(&self, accept: Option<&HeaderValue>) -> Response<Bytes> {
        self.in_form(preferred(accept.into_iter().map(HeaderValue::as_bytes)))
    }

    fn in_form(&self, form: Form) -> Response<Bytes> {
        let (body, kind) = match form {
            Form::Json => (&self.json, "application/json"),
            Form::Page => (&self.page, "text/html; charset=utf-8"),
        };
        let mut response = Response::new(body.clone());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        // The same for everybody, and soon right again after a change.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=60"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if form == Form::Page {
            const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        }
        response
    }
}

#[cfg(test)]
mod tests;
