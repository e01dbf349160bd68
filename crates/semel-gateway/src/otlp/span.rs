//! One request, as its spans tell it: names by OpenTelemetry's conventions for HTTP, and `semel.*` for what is ours.
//!
//! What a client keeps to itself is in none of them: no key, no tenant, no query, no header, no body.

use super::context::{Context, SpanId};
use super::encoding::{Attributes, Resource, SpanFields, SpanKind};
use crate::route::{Route, Routes};
use http::Method;
use semel::protobuf::Message;
use semel::trace::Noted;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A path is told up to this length.
const LONGEST_PATH: usize = 256;

/// A request that has ended.
pub(super) struct Ended {
    pub(super) context: Context,
    pub(super) started: SystemTime,
    pub(super) begun: Instant,
    pub(super) took: Duration,
    pub(super) method: Method,
    pub(super) scheme: &'static str,
    pub(super) path: Box<str>,
    /// None: the client hung up before there was an answer.
    pub(super) status: Option<u16>,
    pub(super) noted: Noted,
}

/// What is the same for all requests.
pub(crate) struct Names {
    pub(crate) routes: Routes,
    /// The service's.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A path as it is told.
pub(super) fn shortened(path: &str) -> Box<str> {
    let end = path.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST_PATH).unwrap_or(path.len());
    path[..end].into()
}

/// The method as the conventions have it: what is no known one is `_OTHER`, so that clients cannot make names.
fn method_name(method: &Method) -> &str {
    const KNOWN: [Method; 9] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::CONNECT,
        Method::OPTIONS,
        Method::TRACE,
        Method::PATCH,
    ];
    if KNOWN.contains(method) { method.as_str() } else { "_OTHER" }
}

/// The body of an export of traces.
pub(super) fn export(resource: &Resource, names: &Names, ended: &[Ended]) -> Vec<u8> {
    resource.around(|scope| {
        for request in ended {
            request.write(names, scope, 2);
        }
    })
}

impl Ended {
    /// Writes the request's span, and those of the store calls and of the service below it.
    pub(super) fn write(&self, names: &Names, spans: &mut Message, field: u64) {
        spans.message(field, |span| self.write_request(names, span));
        if let Some(turn) = self.noted.service {
            let took =
                turn.took.unwrap_or_else(|| (self.begun + self.took).saturating_duration_since(turn.begun));
            let fields = self.below(0, method_name(&self.method), SpanKind::Client, turn.begun, took);
            spans.message(field, |span| {
                let attributes = fields.write(span, turn.status.is_none_or(|status| status >= 400));
                attributes.text(span, "http.request.method", method_name(&self.method));
                attributes.text(span, "server.address", &names.host);
                attributes.number(span, "server.port", names.port.into());
                match turn.status {
                    Some(status) => status_and_error(attributes, span, status, 400),
                    None if turn.took.is_none() => attributes.text(span, "error.type", "timeout"),
                    None => attributes.text(span, "error.type", "no_answer"),
                }
            });
        }
        for (index, call) in self.noted.store.iter().enumerate() {
            let name = format!("store {}", call.call.as_str());
            let fields = self.below(index + 1, &name, SpanKind::Client, call.begun, call.took);
            spans.message(field, |span| {
                let attributes = fields.write(span, !call.answered);
                attributes.text(span, "db.operation.name", call.call.as_str());
                attributes.number(span, "semel.batch_size", call.batch as u64);
                if !call.answered {
                    attributes.text(span, "error.type", "store_error");
                }
            });
        }
    }

    fn write_request(&self, names: &Names, span: &mut Message) {
        let method = method_name(&self.method);
        let operation = self.noted.operation.as_deref();
        let route = operation.and_then(|operation| names.routes.of_operation(operation));
        let path = route.map(|route| route.pattern.path());
        let name = path.map_or_else(|| method.to_owned(), |path| format!("{method} {path}"));
        let Context { trace, parent, span: id, .. } = self.context;
        let fields = SpanFields {
            trace,
            id,
            parent,
            name: &name,
            kind: SpanKind::Server,
            start: nanoseconds(self.started),
            took: self.took,
        };
        let attributes = fields.write(span, self.status.is_none_or(|status| status >= 500));
        attributes.text(span, "http.request.method", method);
        attributes.text(span, "url.path", &self.path);
        attributes.text(span, "url.scheme", self.scheme);
        match self.status {
            Some(status) => status_and_error(attributes, span, status, 500),
            None => attributes.text(span, "error.type", "client_hung_up"),
        }
        if let Some(path) = path {
            attributes.text(span, "http.route", path);
        }
        let Noted { operation_id, attempt, decision, outcome, problem, store, .. } = &self.noted;
        if operation.is_some() {
            // As in the metrics: where paths name operations, there is no end of names.
            let label = route.map_or(crate::metrics::UNCONFIGURED, Route::label);
            attributes.text(span, "semel.operation", label);
        }
        if let Some(id) = operation_id {
            attributes.text(span, "semel.operation_id", &id.to_string());
        }
        for (name, value) in
            [("semel.decision", decision), ("semel.outcome", outcome), ("semel.problem", problem)]
        {
            if let Some(value) = value {
                attributes.text(span, name, value);
            }
        }
        if let Some(attempt) = attempt {
            attributes.number(span, "semel.attempt", (*attempt).into());
        }
        if let Some(first) = store.first() {
            // Of the call that decided.
            attributes.number(span, "semel.batch_size", first.batch as u64);
            let in_store: Duration = store.iter().map(|call| call.took).sum();
            attributes.double(span, "semel.store_seconds", in_store.as_secs_f64());
        }
    }

    fn below<'a>(
        &self,
        nth: usize,
        name: &'a str,
        kind: SpanKind,
        begun: Instant,
        took: Duration,
    ) -> SpanFields<'a> {
        let start = self.started + begun.saturating_duration_since(self.begun);
        SpanFields {
            trace: self.context.trace,
            id: self.context.span.child(nth),
            parent: Some(self.context.span),
            name,
            kind,
            start: nanoseconds(start),
            took,
        }
    }

    /// The span that the service is told of: the one of its own turn.
    pub(super) fn services(context: &Context) -> SpanId {
        context.span.child(0)
    }
}

fn status_and_error(attributes: Attributes, span: &mut Message, status: u16, error: u16) {
    attributes.number(span, "http.response.status_code", status.into());
    if status >= error {
        attributes.text(span, "error.type", &status.to_string());
    }
}

pub(super) fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_cut_between_characters() {
        assert_eq!(&*shortened("/payments"), "/payments");
        let long = format!("/{}", "é".repeat(300));
        let cut = shortened(&long);
        assert!(cut.len() <= LONGEST_PATH + 1 && long.starts_with(&*cut), "{}", cut.len());
    }

    #[test]
    fn a_client_cannot_make_names_of_methods() {
        assert_eq!(method_name(&Method::POST), "POST");
        assert_eq!(method_name(&Method::from_bytes(b"BREW").unwrap()), "_OTHER");
    }
}
