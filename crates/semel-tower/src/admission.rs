//! Admission: whether a request is protected, and by which key of its head.

use crate::body::Body;
use crate::protection::{KeyRequirement, Protection, ValidProtection};
use crate::state::LayerState;
use http::Response;
use http::request::Parts;
use semel::fingerprint::JsonBody;
use semel::key::{IdempotencyKey, InvalidKey, KeyRules};
use semel::observe::Event;
use semel::problem::Code;

/// Whether a request is protected.
pub(crate) enum Admission {
    Pass,
    /// The key is optional and the client sent none. `Semel-*` fields still pass in neither direction.
    PassWithoutKey,
    Answer(Box<Response<Body>>),
    Protect(Box<Admitted>),
}

/// A request that is to be protected.
pub(crate) struct Admitted {
    /// The key in its head; the body may have one too, or alone.
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) operation: String,
    pub(crate) protection: ValidProtection,
}

impl LayerState {
    pub(crate) fn admit(&self, parts: &Parts) -> Admission {
        let Some((operation, protection)) = (self.select)(parts) else {
            return self.published(parts).map_or(Admission::Pass, |page| Admission::Answer(Box::new(page)));
        };
        semel::trace::note(|noted| noted.operation = Some(operation.as_str().into()));
        let key = match protection.key_sources.find(self.rules_of(&protection), &parts.headers, None) {
            Ok(key) => key,
            Err(error) => return Admission::Answer(Box::new(self.invalid_key(&error))),
        };
        if key.is_none() && !is_in_body(&protection, parts) {
            return match self.without_key(&operation, &protection) {
                Some(refusal) => Admission::Answer(Box::new(refusal)),
                None => Admission::PassWithoutKey,
            };
        }
        Admission::Protect(Box::new(Admitted { key, operation, protection }))
    }

    /// What a request without a key is answered; `None`: it passes.
    pub(crate) fn without_key(&self, operation: &str, protection: &Protection) -> Option<Response<Body>> {
        if let Some(observer) = self.engine.observer() {
            observer.count(operation, Event::MissingKey);
        }
        if protection.key == KeyRequirement::Optional {
            return None;
        }
        let detail = format!(
            "This operation requires {}. Create one key per operation (for example a UUID), and send the same key with \
             every retry.",
            protection.key_sources.wanted()
        );
        Some(self.key_problem(Code::KeyMissing, detail))
    }

    pub(crate) fn invalid_key(&self, error: &InvalidKey) -> Response<Body> {
        self.key_problem(Code::KeyInvalid, error.to_string())
    }

    pub(crate) fn rules_of<'a>(&'a self, protection: &'a Protection) -> &'a KeyRules {
        protection.key_rules.as_ref().unwrap_or(&self.key_rules)
    }
}

/// Whether the body has to be looked into for a key.
pub(crate) fn is_in_body(protection: &Protection, parts: &Parts) -> bool {
    protection.key_sources.reads_body() && JsonBody::of(&parts.headers) != JsonBody::No
}
