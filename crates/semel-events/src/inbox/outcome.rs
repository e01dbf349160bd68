//! What became of a message, or of one of its effects.

use super::identity::InvalidIdentity;
use semel::StoreError;

/// What became of a message, or of one of its effects. In both cases it is done, and the message can be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handled<T> {
    /// It was done now, came to this, and is committed.
    Now(T),
    /// It was done before. Nothing ran.
    Before,
}

impl<T> Handled<T> {
    /// What it came to, where it was done now.
    pub fn now(self) -> Option<T> {
        match self {
            Self::Now(value) => Some(value),
            Self::Before => None,
        }
    }
}

/// Why a message was not handled. It must not be acknowledged; delivering it again is safe in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InboxError<E> {
    /// The effect failed. What it wrote is rolled back, with the mark.
    #[error("the effect failed")]
    Application(E),
    /// Another delivery of this message (or another message with this effect) is under way. Only once its transaction has ended is it
    /// known whether there is anything left to do.
    #[error("another consumer is handling it: retry when that has ended")]
    InProgress,
    /// The transaction would be told as committed before it is on disk: the message could be acknowledged, and its effect lost.
    #[error(
        "synchronous_commit is neither on nor remote_apply in this transaction: the effect of an acknowledged message could be lost"
    )]
    NotDurable,
    /// The connection is in no transaction: the mark would be there without its effect.
    #[error(
        "the connection is not in a transaction: begin one with sqlx (`pool.begin()`), and commit mark and effect with \
         it"
    )]
    NoTransaction,
    /// An identity that cannot be one.
    #[error(transparent)]
    Identity(#[from] InvalidIdentity),
    /// The database did not take the transaction, and would not take it the next time: a deferred constraint, mostly, or a statement that
    /// failed in it and was passed over. Nothing was written.
    #[error("the database refused the transaction: {0}")]
    Refused(String),
    /// The store could not be asked; with [`StoreError::Lost`], effect and mark are there, or neither is.
    #[error(transparent)]
    Store(#[from] StoreError),
}
