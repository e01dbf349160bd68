//! What the other side of an outside call can be relied on for, once nobody knows whether a call reached it.

use std::fmt;

/// The identity of one outside call, for the other side to know it again: the same on every attempt.
///
/// It cannot be copied, so that one phase makes one call.
pub struct Identity {
    pub(super) key: String,
    pub(super) attempt: u32,
}

impl Identity {
    /// The attempt that makes the call, counted from 1. A provider that is told can refuse what comes late from an earlier one.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The key to send along with the one call.
    #[must_use]
    pub fn into_key(self) -> String {
        self.key
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}

/// What to ask the other side about.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// The identity's key.
    pub key: &'a str,
    /// The attempts in question: this one and all before it.
    pub up_to_attempt: u32,
}

/// What the other side says of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found<T> {
    /// It was carried out, and came to this.
    Happened(T),
    /// It was not carried out **and will not be**, should it still be on its way: the other side refuses the attempts in question
    /// from now on. A bare "not found" is not that, for the call may arrive a moment later.
    NeverWill,
    /// Nobody can say.
    Unclear,
}

/// What is to become of a call that an earlier attempt may have made.
#[derive(Debug)]
pub enum Takeover<T> {
    /// It may be made again.
    Repeat,
    /// It was carried out, and came to this.
    Happened(T),
    /// Nobody can say: the outcome is unknown.
    Unclear,
}

/// What the other side of a foreign phase promises. Declared by whoever knows it, never guessed.
///
/// The three there are: [`Deduplicated`], [`queryable`] and [`AtMostOnce`].
pub trait Promise<T, E> {
    /// An earlier attempt may have made the call. What now?
    fn after_takeover(&self, inquiry: Inquiry<'_>) -> impl Future<Output = Result<Takeover<T>, E>>;

    /// This attempt made the call and got no answer. What came of it, as far as can be said?
    fn after_silence(&self, inquiry: Inquiry<'_>) -> impl Future<Output = Found<T>>;
}

/// The other side carries a call of one identity out once, however often it is made.
#[derive(Clone, Copy, Debug)]
pub struct Deduplicated;

impl<T, E> Promise<T, E> for Deduplicated {
    async fn after_takeover(&self, _inquiry: Inquiry<'_>) -> Result<Takeover<T>, E> {
        Ok(Takeover::Repeat)
    }

    async fn after_silence(&self, _inquiry: Inquiry<'_>) -> Found<T> {
        Found::Unclear
    }
}

/// The other side promises nothing: the call is made at most once, and without an answer the outcome is unknown.
#[derive(Clone, Copy, Debug)]
pub struct AtMostOnce;

impl<T, E> Promise<T, E> for AtMostOnce {
    async fn after_takeover(&self, _inquiry: Inquiry<'_>) -> Result<Takeover<T>, E> {
        Ok(Takeover::Unclear)
    }

    async fn after_silence(&self, _inquiry: Inquiry<'_>) -> Found<T> {
        Found::Unclear
    }
}

/// The other side can be asked what became of a call: see [`queryable`].
#[derive(Clone, Copy, Debug)]
pub struct Queryable<Ask>(Ask);

/// The other side can be asked what became of a call of this identity.
pub fn queryable<T, E, Ask: AsyncFn(Inquiry<'_>) -> Result<Found<T>, E>>(ask: Ask) -> Queryable<Ask> {
    Queryable(ask)
}

impl<T, E, Ask: AsyncFn(Inquiry<'_>) -> Result<Found<T>, E>> Promise<T, E> for Queryable<Ask> {
    async fn after_takeover(&self, inquiry: Inquiry<'_>) -> Result<Takeover<T>, E> {
        Ok(match (self.0)(inquiry).await? {
            Found::Happened(value) => Takeover::Happened(value),
            Found::NeverWill => Takeover::Repeat,
            Found::Unclear => Takeover::Unclear,
        })
    }

    async fn after_silence(&self, inquiry: Inquiry<'_>) -> Found<T> {
        (self.0)(inquiry).await.unwrap_or(Found::Unclear)
    }
}
