//! What the other side of an outside call promises, for when it is unknown whether a call reached it.

use std::fmt;

/// The identity of one outside call, for the other side to know it again: the same on every attempt.
///
/// It cannot be copied, so that one phase makes one call.
pub struct Identity {
    pub(super) key: String,
    pub(super) attempt: u32,
}

impl Identity {
    /// The attempt that makes the call, counted from 1. A provider that knows it can refuse late calls of earlier attempts.
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
#[derive(Clone)]
pub struct Inquiry {
    /// The identity's key.
    pub key: String,
    /// The attempts in question: this one and all before it.
    pub up_to_attempt: u32,
}

impl fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inquiry").field("up_to_attempt", &self.up_to_attempt).finish_non_exhaustive()
    }
}

/// What the other side says of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found<T> {
    /// It was carried out, and came to this.
    Happened(T),
    /// It was not carried out **and will not be**, should it still be on its way: the other side refuses the attempts in question
    /// from now on. A bare "not found" is not that, for the call may arrive a moment later.
    NeverWill,
    /// It cannot be known.
    Unclear,
}

/// What is to become of a call that an earlier attempt may have made.
#[derive(Debug)]
pub enum Takeover<T> {
    /// It may be made again.
    Repeat,
    /// It was carried out, and came to this.
    Happened(T),
    /// It cannot be known: the outcome is unknown.
    Unclear,
}

impl<T> From<Found<T>> for Takeover<T> {
    fn from(found: Found<T>) -> Self {
        match found {
            Found::Happened(value) => Self::Happened(value),
            Found::NeverWill => Self::Repeat,
            Found::Unclear => Self::Unclear,
        }
    }
}

/// What the other side of a foreign phase promises. Declared by the application, never guessed.
///
/// The three there are: [`Deduplicated`], [`queryable`] and [`AtMostOnce`].
pub trait Promise<T, E> {
    /// An earlier attempt may have made the call. What now?
    fn after_takeover(&self, inquiry: Inquiry) -> impl Future<Output = Result<Takeover<T>, E>>;

    /// This attempt made the call and got no answer. What came of it, as far as can be said?
    fn after_silence(&self, inquiry: Inquiry) -> impl Future<Output = Found<T>>;
}

/// The other side carries a call of one identity out once, however often it is made.
#[derive(Clone, Copy, Debug)]
pub struct Deduplicated;

impl<T, E> Promise<T, E> for Deduplicated {
    async fn after_takeover(&self, _inquiry: Inquiry) -> Result<Takeover<T>, E> {
        Ok(Takeover::Repeat)
    }

    async fn after_silence(&self, _inquiry: Inquiry) -> Found<T> {
        Found::Unclear
    }
}

/// The other side promises nothing: the call is made at most once, and without an answer the outcome is unknown.
#[derive(Clone, Copy, Debug)]
pub struct AtMostOnce;

impl<T, E> Promise<T, E> for AtMostOnce {
    async fn after_takeover(&self, _inquiry: Inquiry) -> Result<Takeover<T>, E> {
        Ok(Takeover::Unclear)
    }

    async fn after_silence(&self, _inquiry: Inquiry) -> Found<T> {
        Found::Unclear
    }
}

/// The other side can be asked what became of a call: see [`queryable`].
#[derive(Clone, Copy, Debug)]
pub struct Queryable<Ask>(Ask);

/// The other side can be asked what became of a call of this identity.
///
/// ```
/// # use semel::{Found, Inquiry, PhaseError, Phases, queryable};
/// # type Error = std::io::Error;
/// # struct Provider;
/// # impl Provider {
/// #     async fn charge(&self, _key: String) -> Result<String, Error> { Ok("ch_1".into()) }
/// #     async fn find(&self, _key: &str, _attempt: u32) -> Result<Option<String>, Error> { Ok(None) }
/// # }
/// # async fn run(phases: &mut Phases, provider: &Provider) -> Result<String, PhaseError<Error>> {
/// // This provider refuses an attempt that it has said "not found" of.
/// let ask = queryable(async |inquiry: Inquiry| {
///     let found = provider.find(&inquiry.key, inquiry.up_to_attempt).await?;
///     Ok(found.map_or(Found::NeverWill, Found::Happened))
/// });
/// let charge = phases.foreign("charged", ask, async |identity| provider.charge(identity.into_key()).await).await?;
/// # Ok(charge) }
/// ```
// `Fn` and not `AsyncFn`, whose future borrows of the closure: a handler that holds one across an `await` is not `Send` for the
// compiler, and no web server takes it.
pub fn queryable<T, E, Ask, Asking>(ask: Ask) -> Queryable<Ask>
where
    Ask: Fn(Inquiry) -> Asking,
    Asking: Future<Output = Result<Found<T>, E>>,
{
    Queryable(ask)
}

impl<T, E, Ask, Asking> Promise<T, E> for Queryable<Ask>
where
    Ask: Fn(Inquiry) -> Asking,
    Asking: Future<Output = Result<Found<T>, E>>,
{
    async fn after_takeover(&self, inquiry: Inquiry) -> Result<Takeover<T>, E> {
        Ok((self.0)(inquiry).await?.into())
    }

    async fn after_silence(&self, inquiry: Inquiry) -> Found<T> {
        (self.0)(inquiry).await.unwrap_or(Found::Unclear)
    }
}
