//! A message as it arrives.

use crate::inbox::MessageId;
use crate::message::debug_message;
use bytes::Bytes;
use std::fmt;

/// A message as it arrives, perhaps not for the first time. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// The same however often it is delivered.
    pub id: MessageId,
    /// What it is about. Messages of one aggregate come one after the other.
    pub aggregate: String,
    /// What happened: `PaymentCreated`.
    pub kind: String,
    /// `application/json`, mostly.
    pub content_type: String,
    /// What is to be known about it.
    pub payload: Bytes,
}

impl Delivery {
    /// A message, for trying a handler out.
    pub fn new(
        id: MessageId,
        aggregate: impl Into<String>,
        kind: impl Into<String>,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self {
            id,
            aggregate: aggregate.into(),
            kind: kind.into(),
            content_type: "application/json".into(),
            payload: payload.into(),
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, aggregate, kind, content_type, payload } = self;
        debug_message(f.debug_struct("Delivery").field("id", id), [aggregate, kind, content_type], payload)
    }
}
