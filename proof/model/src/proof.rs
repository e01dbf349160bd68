//! What is known of an attempt, and what is named of it.

/// What a settler knows, and of which operation and attempt it knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Proof {
    /// The operation.
    pub op: u8,
    /// The attempt that was looked into.
    pub attempt: u8,
    /// What came out.
    pub finding: Finding,
}

/// What a settler found.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Finding {
    /// It happened, and this is its answer.
    Completed(Option<u8>),
    /// It was declined for good, and this is its answer.
    Failed(Option<u8>),
    /// It did not happen and will not.
    NotExecuted,
    /// The provider knows nothing of it.
    Absent,
}

/// What evidence names of what it is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Names {
    /// The operation and the attempt.
    Attempt,
    /// The operation alone.
    Operation,
    /// The client's key alone: whatever operation it stood for at the time.
    Key,
}
