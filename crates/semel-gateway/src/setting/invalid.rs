//! What is wrong with one value.

/// What is wrong with a value, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}: {cure}")]
pub struct InvalidValue {
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub cure: String,
}

impl InvalidValue {
    pub(crate) fn new(problem: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { problem: problem.into(), cure: cure.into() }
    }
}
