//! One request of a case, made from the user's request and what the case changes.

use crate::body::Body;
use crate::call::Call;
use crate::header::Header;
use crate::settings::{Extra, KeyPlace, Settings};
use crate::shell::quoted;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// What one case works on: a key and a reference of its own.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) key: String,
    pub(crate) reference: String,
}

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    Own,
    /// Another account.
    Other,
    /// The same account with a refreshed credential.
    Refreshed,
    /// Without credentials.
    Anonymous,
}

/// A request that can be sent.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Which of the nodes: 0 is the target.
    pub(crate) node: usize,
}

/// A request that is being made.
#[derive(Clone)]
pub(crate) struct Draft<'a> {
    plan: &'a Settings,
    call: Call,
    keys: Vec<Vec<u8>>,
    body: Body,
    caller: Caller,
    extra: Vec<(HeaderName, HeaderValue)>,
    node: usize,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(plan: &'a Settings, subject: &Subject) -> Self {
        let mut call = plan.send.clone();
        call.path = call.path.replace("{reference}", &subject.reference);
        Self {
            plan,
            call,
            keys: vec![subject.key.clone().into_bytes()],
            body: marked(plan, &plan.body, subject),
            caller: Caller::Own,
            extra: Vec::new(),
            node: 0,
        }
    }

    /// With the body that means something else. `None` if nothing can be varied.
    pub(crate) fn varied(mut self, subject: &Subject) -> Option<Self> {
        self.body = marked(self.plan, &self.plan.body.varied(self.plan.vary.as_ref()?)?, subject);
        Some(self)
    }

    pub(crate) fn body(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&Body) -> Option<Body>) -> Option<Self> {
        self.body = change(&self.body)?;
        Some(self)
    }

    pub(crate) fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.keys = vec![key.into()];
        self
    }

    pub(crate) fn keys<const N: usize>(mut self, keys: [&str; N]) -> Self {
        self.keys = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        self
    }

    pub(crate) fn caller(mut self, caller: Caller) -> Self {
        self.caller = caller;
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.extra.push((HeaderName::from_static(name), value));
        }
        self
    }

    pub(crate) fn with(mut self, extra: &Extra) -> Self {
        match extra {
            Extra::Header(header) => self.extra.push((header.name.clone(), header.value.clone())),
            Extra::Member { pointer, value } => {
                self.body = self.body.with(pointer, value).unwrap_or(self.body);
            }
        }
        self
    }

    pub(crate) fn call(mut self, call: &Call) -> Self {
        self.call = call.clone();
        self
    }

    /// With something after its path: a query.
    pub(crate) fn add_to_path(mut self, text: &str) -> Self {
        self.call.path.push_str(text);
        self
    }

    pub(crate) fn path(mut self, path: String) -> Self {
        self.call.path = path;
        self
    }

    pub(crate) fn node(mut self, node: usize) -> Self {
        self.node = node;
        self
    }

    /// The request. `None` if a key has bytes that no header can have.
    pub(crate) fn build(self) -> Option<Request> {
        let mut headers = HeaderMap::new();
        let mut body = self.body;
        match &self.plan.key {
            KeyPlace::Header(name) => {
                for key in &self.keys {
                    headers.append(name.clone(), HeaderValue::from_bytes(key).ok()?);
                }
            }
            KeyPlace::Json(pointer) => {
                body = match self.keys.first() {
                    Some(key) => body.with_text(pointer, std::str::from_utf8(key).ok()?)?,
                    None => body.without(pointer),
                };
            }
        }
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("semel-check/", env!("CARGO_PKG_VERSION"))));
        if let Some(content_type) = body.content_type() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        for header in &self.plan.headers {
            headers.insert(header.name.clone(), header.value.clone());
        }
        let replaced: &[Header] = match self.caller {
            Caller::Own | Caller::Anonymous => &[],
            Caller::Other => &self.plan.other_caller,
            Caller::Refreshed => &self.plan.same_caller,
        };
        for header in replaced {
            headers.insert(header.name.clone(), header.value.clone());
        }
        if self.caller == Caller::Anonymous {
            for header in self.plan.credentials() {
                headers.remove(&header.name);
            }
        }
        for (name, value) in self.extra {
            headers.insert(name, value);
        }
        Some(Request {
            method: self.call.method,
            path: self.call.path,
            headers,
            body: body.bytes(),
            node: self.node,
        })
    }
}

fn marked(plan: &Settings, body: &Body, subject: &Subject) -> Body {
    let marked = plan.mark.as_ref().and_then(|mark| body.with_text(mark, &subject.reference));
    marked.unwrap_or_else(|| body.clone())
}

impl Settings {
    /// The headers by which the caller is known.
    pub(crate) fn credentials(&self) -> impl Iterator<Item = &Header> {
        let named = |header: &Header| self.other_caller.iter().any(|other| other.name == header.name);
        self.headers.iter().filter(move |header| header.is_credential() || named(header))
    }
}

impl Request {
    /// The request as a command for a shell, without secrets.
    pub(crate) fn as_curl(&self, plan: &Settings) -> String {
        // Taken out before a text is quoted: a quote in a secret would hide the rest of it.
        let clean = |text: &str| plan.secrets.redact(text);
        let endpoint = if self.node == 0 { &plan.target } else { &plan.also[self.node - 1] };
        let mut words = vec!["curl -i --path-as-is".to_owned()];
        if self.method != Method::POST || self.body.is_empty() {
            words.push(format!("-X {}", self.method));
        }
        words.push(quoted(&clean(&endpoint.at(&self.path))));
        for (name, value) in self.headers.iter().filter(|(name, _)| *name != USER_AGENT) {
            let given = plan.all_headers().find(|header| header.name == name && header.value == value);
            words.push(match given {
                // `$NAME` has to be expanded by the shell.
                Some(header) if header.shown.contains('$') => format!("-H \"{name}: {}\"", header.shown),
                Some(header) => format!("-H {}", quoted(&format!("{name}: {}", header.shown))),
                None => {
                    let value = clean(&String::from_utf8_lossy(value.as_bytes()));
                    format!("-H {}", quoted(&format!("{name}: {value}")))
                }
            });
        }
        if !self.body.is_empty() {
            words.push(format!("--data-binary {}", quoted(&clean(&String::from_utf8_lossy(&self.body)))));
        }
        words.join(" ")
    }
}
