//! What OTLP's messages have in common, and the one for traces. The numbers are those of its protocol buffers, version 1.

use super::context::{SpanId, TraceId};
use semel::protobuf::Message;
use std::time::Duration;

/// Who tells all this.
pub(super) struct Resource {
    pub(super) service_name: String,
    /// Another one for every process.
    pub(super) instance: String,
}

impl Resource {
    /// `resource` and `scope`, around what `write` writes as the scope's own.
    ///
    /// Traces and metrics have the same numbers here: 1 and 2 on each level.
    pub(super) fn around(&self, write: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut request = Message::new();
        request.message(1, |of_resource| {
            of_resource.message(1, |resource| {
                let attributes = Attributes(1);
                attributes.text(resource, "service.name", &self.service_name);
                attributes.text(resource, "service.version", env!("CARGO_PKG_VERSION"));
                attributes.text(resource, "service.instance.id", &self.instance);
            });
            of_resource.message(2, |of_scope| {
                of_scope.message(1, |scope| {
                    scope.text(1, "semel");
                    scope.text(2, env!("CARGO_PKG_VERSION"));
                });
                write(of_scope);
            });
        });
        request.into_bytes()
    }
}

/// Attributes, written under this number of their message.
#[derive(Clone, Copy)]
pub(super) struct Attributes(pub(super) u64);

impl Attributes {
    pub(super) fn text(self, message: &mut Message, name: &str, value: &str) {
        self.any(message, name, |any| any.text(1, value));
    }

    pub(super) fn number(self, message: &mut Message, name: &str, value: u64) {
        self.any(message, name, |any| any.number(3, value));
    }

    pub(super) fn double(self, message: &mut Message, name: &str, value: f64) {
        self.any(message, name, |any| any.double(4, value));
    }

    fn any(self, message: &mut Message, name: &str, value: impl FnOnce(&mut Message)) {
        message.message(self.0, |pair| {
            pair.text(1, name);
            pair.message(2, value);
        });
    }
}

#[derive(Clone, Copy)]
pub(super) enum SpanKind {
    Server = 2,
    Client = 3,
}

/// What every span has.
pub(super) struct SpanFields<'a> {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) name: &'a str,
    pub(super) kind: SpanKind,
    pub(super) start: u64,
    pub(super) took: Duration,
}

impl SpanFields<'_> {
    /// Writes these; its attributes come after them.
    pub(super) fn write(&self, span: &mut Message, failed: bool) -> Attributes {
        span.bytes(1, &self.trace.0.to_be_bytes());
        span.bytes(2, &self.id.0.to_be_bytes());
        if let Some(parent) = self.parent {
            span.bytes(4, &parent.0.to_be_bytes());
        }
        span.text(5, self.name);
        span.number(6, self.kind as u64);
        span.fixed64(7, self.start);
        let took = u64::try_from(self.took.as_nanos()).unwrap_or(u64::MAX);
        span.fixed64(8, self.start.saturating_add(took));
        if failed {
            const ERROR: u64 = 2;
            span.message(15, |status| status.number(3, ERROR));
        }
        Attributes(9)
    }
}
