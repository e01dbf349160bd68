//! Ids in paths: of events and of frozen lists.

use serde::Deserialize;
use uuid::Uuid;

/// A UUID in a path.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Id(pub(super) Uuid);

impl TryFrom<String> for Id {
    type Error = uuid::Error;

    fn try_from(text: String) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}
