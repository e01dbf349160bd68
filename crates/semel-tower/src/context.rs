//! The `context` of a request's JSON body, which clients of some profiles get back in refusals.

use crate::body::Body;
use crate::state::LayerState;
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use semel::fingerprint::JsonBody;
use semel::problem::{PlainProblem, Problem};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A request's JSON body, once it was read. Nothing is looked for in it before a refusal.
#[derive(Clone, Default)]
pub(crate) struct SeenBody(Option<Arc<OnceLock<Bytes>>>);

impl SeenBody {
    /// Nothing yet, and nothing ever where nobody gets it back.
    pub(crate) fn of(state: &LayerState) -> Self {
        Self(state.format.echoes_context().then(Arc::default))
    }

    pub(crate) fn is(&self, parts: &Parts, body: &Bytes) {
        if let Some(seen) = &self.0
            && JsonBody::of(&parts.headers) == JsonBody::Yes
        {
            let _first = seen.set(body.clone());
        }
    }

    /// Adds the context to a refusal.
    pub(crate) fn echo(&self, state: &LayerState, response: &mut Response<Body>) {
        let Some(body) = self.0.as_ref().and_then(|seen| seen.get()) else { return };
        let extensions = response.extensions();
        let refusal = match (extensions.get::<Problem>(), extensions.get::<PlainProblem>()) {
            (Some(problem), _) => state.format.problem(problem, &state.docs),
            (None, Some(problem)) => state.format.plain(problem),
            (None, None) => return,
        };
        if let Some(context) = context_of(body)
            && let Some(body) = state.format.in_context(refusal.body(), context.get())
        {
            *response.body_mut() = Body::from(body);
        }
    }
}

fn context_of(body: &[u8]) -> Option<Box<RawValue>> {
    serde_json::from_slice::<HashMap<String, Box<RawValue>>>(body).ok()?.remove("context")
}
