//! What problem documents link to: a page of the codes at `/.well-known/idempotency`, for people and for programs.
//!
//! The gateway publishes its whole contract there. The layer knows the codes and the rules of keys; which operations there are, the
//! service knows.

use crate::body::Body;
use crate::state::{LayerState, path};
use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use semel::headers::IDEMPOTENCY_KEY;
use semel::problem::{Code, DocsBase};
use serde_json::json;

const PATH: &str = "/.well-known/idempotency";

impl LayerState {
    /// The page, if that is what is asked for, and problem documents link there.
    pub(crate) fn published(&self, parts: &Parts) -> Option<Response<Body>> {
        let is_asked_for = matches!(parts.method, Method::GET | Method::HEAD) && path(parts) == PATH;
        if !is_asked_for || self.docs != DocsBase::default() {
            return None;
        }
        let is_browser = parts.headers.get_all(ACCEPT).iter().any(|accepted| {
            accepted.to_str().is_ok_and(|accepted| accepted.to_ascii_lowercase().contains("text/html"))
        });
        let (text, kind) = match is_browser {
            true => (self.page(), "text/html; charset=utf-8"),
            false => (self.document(), "application/json"),
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
        Some(response)
    }

    fn document(&self) -> String {
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
        let document = json!({
            "profile": self.format.name(),
            "key": {
                "header": IDEMPOTENCY_KEY.as_str(),
                "min_length": self.key_rules.min,
                "max_length": self.key_rules.max,
            },
            "errors": Code::ALL.map(error),
        });
        format!("{document:#}\n")
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
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Idempotency keys of this API</title>\n\
             </head>\n<body>\n<h1>Retry anything; it happens once.</h1>\n<p>Send one key for each operation in \
             <code>Idempotency-Key</code>, {min} to {max} characters, and the same key with every retry. A retry gets the answer \
             of the first request.</p>\n{errors}</body>\n</html>\n"
        )
    }
}
