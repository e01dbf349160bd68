//! Where something is that was too large for a record's item.

use crate::names::{WriteId, part};
use std::fmt;

/// Where something is that was too large.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) write: WriteId,
    pub(crate) parts: usize,
    /// How long the first of two things in it is: the headers of an answer.
    pub(crate) first: usize,
}

/// What of a record is apart.
#[derive(Clone, Copy, Default)]
pub(crate) struct Large {
    pub(crate) answer: Option<Apart>,
    pub(crate) checkpoint: Option<Apart>,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.write, self.parts, self.first)
    }
}

impl Apart {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(':');
        let (write, parts, first) = (fields.next()?, fields.next()?, fields.next()?);
        let (parts, first) = (parts.parse().ok()?, first.parse().ok()?);
        Some(Self { write: WriteId::parse(write)?, parts, first })
    }

    pub(crate) fn names(self) -> impl Iterator<Item = String> {
        (0..self.parts).map(move |number| part(self.write, number))
    }
}
