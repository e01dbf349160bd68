//! The same record by another key.

use super::{Change, next_version, put};
use crate::record::{Record, StoredResponse};
use bytes::Bytes;

/// The record with its response and checkpoint spelt otherwise. Nothing else about it changes: no state, no owner, no moment; and
/// nothing is told of it. The version rises as with every write, so that an owner's next write is decided again on what it finds.
#[must_use]
pub fn rewrite(record: &Record, response: Option<StoredResponse>, checkpoint: Option<Bytes>) -> Change {
    let mut next = next_version(record);
    next.response = response;
    next.checkpoint = checkpoint;
    put(next, None)
}
