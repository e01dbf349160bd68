//! Admission: whether a request is protected, and by which key.

use crate::body::Body;
use crate::headers::IDEMPOTENCY_KEY;
use crate::protection::{KeyRequirement, ValidProtection};
use crate::state::LayerState;
use http::Response;
use http::request::Parts;
use semel::key::IdempotencyKey;
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
    pub(crate) key: IdempotencyKey,
    pub(crate) operation: String,
    pub(crate) protection: ValidProtection,
}

impl LayerState {
    pub(crate) fn admit(&self, parts: &Parts) -> Admission {
        let Some((operation, protection)) = (self.select)(parts) else {
            return self.published(parts).map_or(Admission::Pass, |page| Admission::Answer(Box::new(page)));
        };
        semel::trace::note(|noted| noted.operation = Some(operation.as_str().into()));
        let refuse = |code, detail| Admission::Answer(Box::new(self.key_problem(code, detail)));
        let key = self.key_rules.parse(parts.headers.get_all(IDEMPOTENCY_KEY).iter());
        if let (Ok(None), Some(observer)) = (&key, self.engine.observer()) {
            observer.count(&operation, Event::MissingKey);
        }
        match key {
            Ok(Some(key)) => Admission::Protect(Box::new(Admitted { key, operation, protection })),
            Ok(None) if protection.key == KeyRequirement::Optional => Admission::PassWithoutKey,
            Ok(None) => refuse(
                Code::KeyMissing,
                "This operation requires an Idempotency-Key header. Create one key per operation (for example a \
                 UUID), and send the same key with every retry."
                    .into(),
            ),
            Err(error) => refuse(Code::KeyInvalid, error.to_string()),
        }
    }
}
