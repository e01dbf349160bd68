//! What clients are promised, as the layer knows it: the same members as in the contract that the gateway publishes.

use crate::outcome::OutcomeRules;
use crate::protection::{KeyRequirement, Protection, ValidProtection};
use http::{Method, StatusCode};
use semel::key::KeySources;
use semel::{Expired, InFlight, StoreResponse};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// An operation that the contract tells of.
#[derive(Clone)]
pub(crate) struct Described {
    /// `None`: each method and route is an operation of its own.
    operation: Option<String>,
    methods: Vec<Method>,
    path: Option<String>,
    protection: ValidProtection,
}

impl Described {
    /// Every write, protected like this.
    pub(crate) fn writes(protection: ValidProtection) -> Self {
        Self { operation: None, methods: vec![Method::POST, Method::PATCH], path: None, protection }
    }

    pub(crate) fn operation(
        operation: String,
        method: Method,
        path: String,
        protection: ValidProtection,
    ) -> Self {
        Self { operation: Some(operation), methods: vec![method], path: Some(path), protection }
    }

    /// Where its key is looked for.
    pub(crate) fn key_sources(&self) -> &KeySources {
        &self.protection.key_sources
    }

    /// The document, with where its key is looked for unless that is as `usual`.
    pub(crate) fn document(&self, usual: &KeySources) -> Value {
        let Protection { policy, recipe, timeout, max_request_body, max_stored_response, outcomes, .. } =
            &*self.protection;
        let (in_flight, pending, wait) = match policy.in_flight {
            InFlight::Conflict => ("conflict", 409, None),
            InFlight::Accepted => ("accepted", 202, None),
            InFlight::Wait(wait) => ("wait", 409, Some(wait)),
        };
        let mut document = json!({
            "operation": self.operation,
            "methods": self.methods.iter().map(Method::as_str).collect::<Vec<_>>(),
            "path": self.path,
            "key": match self.protection.key {
                KeyRequirement::Required => "required",
                KeyRequirement::Optional => "optional",
            },
            "key_scope": self.protection.key_scope.as_str(),
            "window_seconds": seconds(policy.retention),
            "body_window_seconds": seconds(policy.body_retention.min(policy.retention)),
            "remembered_after_window_seconds": seconds(policy.tombstone),
            "expired": match policy.expired {
                Expired::Refuse => "refuse",
                Expired::New => "new",
            },
            "in_flight": in_flight,
            "in_flight_status": pending,
            "unknown_status": pending,
            "timeout_seconds": seconds(*timeout),
            "stored_response": match policy.store_response {
                StoreResponse::Full => "full",
                StoreResponse::Reference => "reference",
            },
            "max_request_body_bytes": max_request_body,
            "max_stored_response_bytes": max_stored_response,
            "fingerprint": fingerprint(recipe.to_text()),
        });
        let mut add = |name: &str, value: Value| {
            if let Value::Object(members) = &mut document {
                members.insert(name.to_owned(), value);
            }
        };
        if self.protection.key_sources != *usual {
            add("key_sources", json!(texts(&self.protection.key_sources)));
        }
        if let Some(wait) = wait {
            add("wait_seconds", seconds(wait));
        }
        let kept: Vec<_> = self.protection.kept_headers.more().map(|name| name.as_str()).collect();
        if !kept.is_empty() {
            add("kept_headers", json!(kept));
        }
        let overrides = overrides(outcomes);
        if !overrides.is_empty() {
            add("outcomes", json!(overrides));
        }
        document
    }
}

/// The places as settings spell them: `header:NAME`, or `json:` and a pointer.
pub(crate) fn texts(sources: &KeySources) -> Vec<String> {
    sources.iter().map(ToString::to_string).collect()
}

/// The rules of a recipe, from its text.
fn fingerprint(recipe: &str) -> Value {
    let mut rules: Map<String, Value> = serde_json::from_str(recipe).unwrap_or_default();
    let mut rule = |name: &str, otherwise: Value| rules.remove(name).unwrap_or(otherwise);
    let defaults: Map<String, Value> = match rule("defaults", json!({})) {
        // Each is a JSON text.
        Value::Object(texts) => texts.into_iter().map(|(pointer, text)| (pointer, parsed(text))).collect(),
        _ => Map::new(),
    };
    json!({
        "ignored": rule("ignore", json!([])),
        "counted": rule("only", json!([])),
        "headers": rule("headers", json!([])),
        "host": !rule("host", Value::Null).is_null(),
        "defaults": defaults,
        "normalised": rule("normalise", json!({})),
        "bytes": rule("bytes", json!(false)),
    })
}

fn parsed(text: Value) -> Value {
    text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(text)
}

fn seconds(duration: Duration) -> Value {
    match duration.subsec_nanos() {
        0 => json!(duration.as_secs()),
        _ => json!(duration.as_secs_f64()),
    }
}

fn overrides(rules: &OutcomeRules) -> BTreeMap<String, &'static str> {
    let usual = OutcomeRules::default();
    (200..600)
        .filter_map(|status| StatusCode::from_u16(status).ok())
        .filter(|&status| rules.class_of(status) != usual.class_of(status))
        .map(|status| (status.as_str().to_owned(), rules.class_of(status).as_str()))
        .collect()
}
