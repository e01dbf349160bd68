//! The key in a JSON body. The body is checked once: what is found out about it is used again for the fingerprint.

use crate::admission::is_in_body;
use crate::body::Body;
use crate::fingerprinting::{LARGE, in_turn};
use crate::protection::ValidProtection;
use crate::state::LayerState;
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use semel::canonical::CheckedJson;
use semel::fingerprint::JsonBody;
use semel::key::{IdempotencyKey, InvalidKey, KeyError};

/// The key of a whole request, and its body if that was looked into.
pub(crate) struct Keyed {
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) checked: Option<CheckedJson>,
}

impl LayerState {
    /// The key of a request whose head has this one.
    ///
    /// # Errors
    /// The answer to a request whose body is not what a key could be in, or has no key in the key's place, or another one.
    pub(crate) async fn key_of_whole(
        &self,
        in_head: Option<IdempotencyKey>,
        protection: &ValidProtection,
        parts: &Parts,
        body: &Bytes,
    ) -> Result<Keyed, Box<Response<Body>>> {
        if !is_in_body(protection, parts) {
            return Ok(Keyed { key: in_head, checked: None });
        }
        let refused = |error| Box::new(self.invalid_key(&InvalidKey { source: None, error }));
        if JsonBody::of(&parts.headers) == JsonBody::Encoded {
            return Err(refused(KeyError::EncodedBody));
        }
        let text = body.clone();
        let checked = match body.len() > LARGE {
            false => CheckedJson::check(text),
            true => match in_turn(move || CheckedJson::check(text)).await {
                Some(checked) => checked,
                None => return Err(Box::new(self.unknown_at_exit())),
            },
        };
        let checked = checked.map_err(|error| refused(KeyError::UnreadableBody(error)))?;
        if !checked.is_object() {
            return Err(refused(KeyError::NotAnObject));
        }
        let key = protection.key_sources.find(self.rules_of(protection), &parts.headers, Some(&checked));
        let key = key.map_err(|error| Box::new(self.invalid_key(&error)))?;
        Ok(Keyed { key, checked: Some(checked) })
    }
}
