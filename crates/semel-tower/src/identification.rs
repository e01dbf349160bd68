//! Header fields by which a client knows what an answer is of: which request, which key, and how long the key is remembered.

use crate::body::Body;
use crate::cross_origin::Origin;
use crate::headers::{self, IDEMPOTENCY_KEY, OPERATION_ID};
use crate::state::LayerState;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use semel::headers::{IDEMPOTENCY_KEY_EXPIRES, ORIGINAL_REQUEST, ORIGINAL_REQUEST_ID, REQUEST_ID};
use semel::key::KeySources;
use semel::problem::Profile;
use semel::{OperationId, Timestamp};

/// What clients of the profile get back of their request's header, whatever the answer is.
#[derive(Default)]
pub(crate) struct Echo {
    key: Option<(HeaderName, HeaderValue)>,
    request_id: Option<HeaderValue>,
}

impl Echo {
    /// What is to be sent back of this request.
    pub(crate) fn of(profile: Profile, parts: &Parts) -> Self {
        let key = parts.headers.get(IDEMPOTENCY_KEY).filter(|_| echoes_key(profile));
        Self {
            key: key.map(|key| (IDEMPOTENCY_KEY, key.clone())),
            request_id: parts.headers.get(REQUEST_ID).filter(|_| profile == Profile::Acp).cloned(),
        }
    }

    /// Sends back the key's own header, where that is another one.
    pub(crate) fn key_of(&mut self, profile: Profile, sources: &KeySources, parts: &Parts) {
        let mut headers = sources.headers().filter(|_| echoes_key(profile));
        if let Some(found) = headers.find_map(|name| Some((name.clone(), parts.headers.get(name)?.clone()))) {
            self.key = Some(found);
        }
    }

    /// Adds it to the answer.
    pub(crate) fn add_to(self, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        if let Some((name, key)) = self.key {
            headers.insert(name, key);
        }
        if let Some(id) = self.request_id {
            headers.insert(REQUEST_ID, id);
        }
    }
}

/// Whether clients of the profile get their key back.
fn echoes_key(profile: Profile) -> bool {
    matches!(profile, Profile::Stripe | Profile::Acp)
}

/// Says when the key's window is over.
pub(crate) fn add_expiry(headers: &mut HeaderMap, expires: Option<Timestamp>) {
    if let Some(expires) = expires
        && let Ok(date) = HeaderValue::try_from(format!("@{}", expires.as_millis().div_euclid(1000)))
    {
        headers.insert(IDEMPOTENCY_KEY_EXPIRES, date);
    }
}

/// What is kept of the request that executes, for its replays.
#[derive(Default)]
pub(crate) struct FirstRequest {
    id: Option<HeaderValue>,
    origin: Origin,
}

impl FirstRequest {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        Self { id: headers::request_id(headers), origin: Origin::of(headers) }
    }

    /// Whether it comes from a page that has an origin.
    pub(crate) fn is_for_page(&self) -> bool {
        matches!(self.origin, Origin::Named(_))
    }

    /// The page that it comes from.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Keeps with the answer which request it is of: by the id that the service gave it, else by the client's.
    pub(crate) fn keep(&self, answered: Option<&[u8]>, kept: &mut Vec<(String, Bytes)>) {
        if let Some(id) = answered.or(self.id.as_ref().map(HeaderValue::as_bytes)) {
            kept.push((ORIGINAL_REQUEST_ID.as_str().to_owned(), Bytes::copy_from_slice(id)));
        }
        self.origin.keep(kept);
    }
}

/// The id that an application gave a request, in the answer that it made.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) fn id_given(answer: &[(String, Bytes)]) -> Option<Bytes> {
    let given = |wanted: &str| answer.iter().find(|(name, id)| name == wanted && !id.is_empty());
    let (_, id) = given(REQUEST_ID.as_str()).or_else(|| given(semel::headers::X_REQUEST_ID.as_str()))?;
    Some(id.clone())
}

/// The id under which the request of a stored answer was kept.
pub(crate) fn id_kept(answer: &[(String, Bytes)]) -> Option<HeaderValue> {
    let (_, id) = answer.iter().find(|(name, _)| name == ORIGINAL_REQUEST_ID.as_str())?;
    HeaderValue::from_bytes(id).ok()
}

impl LayerState {
    /// Names the request that executed, where the profile's clients look for that.
    pub(crate) fn identify_first(&self, headers: &mut HeaderMap, operation_id: OperationId) {
        if self.profile == Profile::Stripe && !headers.contains_key(REQUEST_ID) {
            headers.insert(REQUEST_ID, stripe_id(operation_id));
        }
    }

    /// Names the request that a replay is of. What was kept of its id is among the headers.
    pub(crate) fn identify_replay(&self, headers: &mut HeaderMap, operation_id: OperationId) {
        if self.profile == Profile::Stripe {
            let original =
                headers.get(ORIGINAL_REQUEST_ID).cloned().unwrap_or_else(|| stripe_id(operation_id));
            headers.insert(ORIGINAL_REQUEST, original);
            headers.insert(REQUEST_ID, stripe_id(OperationId::random()));
        }
        if !headers.contains_key(ORIGINAL_REQUEST_ID)
            && let Some(id) = headers.get(OPERATION_ID).cloned()
        {
            headers.insert(ORIGINAL_REQUEST_ID, id);
        }
    }
}

fn stripe_id(id: OperationId) -> HeaderValue {
    HeaderValue::try_from(format!("req_{id}")).unwrap_or_else(|_| headers::operation_id_value(id))
}
