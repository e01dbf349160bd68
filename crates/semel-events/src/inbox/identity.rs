//! The identities of messages, consumers and effects.

use std::fmt;
use uuid::Uuid;

/// The longest of them, in bytes: what brokers allow, and what an index likes.
const LONGEST: usize = 255;

/// The id that a message keeps however often it is delivered.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(String);

impl MessageId {
    /// The id, if it is one: up to 255 bytes, none of them a control character.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(id: impl Into<String>) -> Result<Self, InvalidIdentity> {
        let id = id.into();
        check("a message id", &id)?;
        Ok(Self(id))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Uuid> for MessageId {
    fn from(id: Uuid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Something that cannot tell messages, consumers or effects apart.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} must have 1 to {LONGEST} bytes without control characters, and this one {trouble}")]
pub struct InvalidIdentity {
    what: &'static str,
    trouble: &'static str,
}

/// Refuses what is empty, too long for the index, or not fit for the columns of every store.
pub(super) fn check(what: &'static str, text: &str) -> Result<(), InvalidIdentity> {
    let trouble = if text.is_empty() {
        "is empty"
    } else if text.len() > LONGEST {
        "is longer"
    } else if text.chars().any(char::is_control) {
        "has one"
    } else {
        return Ok(());
    };
    Err(InvalidIdentity { what, trouble })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_tell_messages_apart_is_no_id() {
        for (id, trouble) in
            [(String::new(), "empty"), ("x".repeat(256), "longer"), ("a\0b".into(), "control")]
        {
            assert!(MessageId::new(id).unwrap_err().to_string().contains(trouble), "{trouble}");
        }
        assert_eq!(MessageId::new("x".repeat(255)).unwrap().as_str().len(), 255);
    }
}
