//! What a publisher needs of a store.

use super::lane::Lane;
use crate::message::Event;
use semel::StoreFuture;
use std::fmt;
use std::time::Duration;
use uuid::Uuid;

/// The events of one store that are to be published, for publishers.
///
/// A publisher holds lanes by a lease, reads what is pending in them, publishes, and settles. Everything can be done again after
/// an answer that was lost.
pub trait Queue: Send + Sync + 'static {
    /// Tells that the publisher lives, renews the leases of its lanes, and takes free ones up to its fair share.
    ///
    /// Lanes are free if no publisher holds them, or if their lease is over by the store's clock. More than the share is kept, not taken
    /// away: events may be under way. A publisher that has more gives some up by [`release`](Self::release).
    fn beat(&self, token: Token, lease: Duration) -> StoreFuture<'_, Beat>;

    /// Gives lanes up, as far as the publisher still holds them. Nothing of theirs may be under way any more.
    fn release(&self, token: Token, lanes: Vec<Lane>) -> StoreFuture<'_, ()>;

    /// Gives everything up: the publisher ends.
    fn leave(&self, token: Token) -> StoreFuture<'_, ()>;

    /// What is to be published in these lanes, some `per_lane` events of each, in the order of each aggregate: events that were never
    /// refused, and those of aggregates whose time to be tried again has come.
    ///
    /// Of one lane, events are taken until their payloads come to a quarter of a mebibyte, whatever their aggregates: first what is to be
    /// tried again, then what was never refused. At least one of the latter is taken in any case: else a large one that is tried again
    /// and does not get through would hold up its lane.
    fn read(&self, lanes: Vec<Lane>, per_lane: usize) -> StoreFuture<'_, Batch>;

    /// Writes down what became of events, in one commit.
    ///
    /// Confirmed events are removed, also if another publisher holds the lane by now: they were delivered. Refusals count, and events are parked, in lanes that the
    /// publisher still holds; for what is left undone there, the one that took over finds out by itself.
    fn settle(&self, token: Token, settlement: Settlement) -> StoreFuture<'_, ()>;
}

/// Names a running publisher.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(Uuid);

impl Token {
    /// A new one.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// As stores keep it.
    #[must_use]
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

// Whoever knows it can settle as this publisher; its first bits are enough to tell two apart in a log.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:04x}…)", self.0.as_u128() >> 112)
    }
}

/// What a publisher holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Beat {
    /// Its lanes, in order.
    pub lanes: Vec<Lane>,
    /// How many lanes are its fair share among the publishers that live.
    pub share: usize,
}

/// What is to be published.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// Events, each aggregate's in their order.
    pub events: Vec<Pending>,
    /// Events of aggregates that wait: they are to be parked behind the others.
    pub behind: Vec<Pending>,
}

/// An event on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The event.
    pub event: Event,
    /// Its place in the order of its aggregate.
    pub id: i64,
    /// Its lane.
    pub lane: Lane,
    /// How often it was refused.
    pub attempts: u32,
    /// Whether it waited for its aggregate to be tried again.
    pub parked: bool,
}

/// What became of events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Settlement {
    /// The receiver has confirmed these.
    pub published: Vec<Pending>,
    /// The receiver refused these.
    pub refused: Vec<Refused>,
    /// These wait behind one that was refused.
    pub behind: Vec<Pending>,
}

impl Settlement {
    /// How many events it is about.
    pub(crate) fn len(&self) -> usize {
        self.published.len() + self.refused.len() + self.behind.len()
    }
}

/// An event that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Which.
    pub event: Pending,
    /// What the receiver said.
    pub error: String,
    /// When it is tried again; `None`: it is a dead letter.
    pub retry_in: Option<Duration>,
}

/// The bytes of payloads that are read of one lane at a time.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) const LANE_BYTES: i64 = 256 * 1024;

impl<Q: Queue + ?Sized> Queue for std::sync::Arc<Q> {
    fn beat(&self, token: Token, lease: Duration) -> StoreFuture<'_, Beat> {
        (**self).beat(token, lease)
    }

    fn release(&self, token: Token, lanes: Vec<Lane>) -> StoreFuture<'_, ()> {
        (**self).release(token, lanes)
    }

    fn leave(&self, token: Token) -> StoreFuture<'_, ()> {
        (**self).leave(token)
    }

    fn read(&self, lanes: Vec<Lane>, per_lane: usize) -> StoreFuture<'_, Batch> {
        (**self).read(lanes, per_lane)
    }

    fn settle(&self, token: Token, settlement: Settlement) -> StoreFuture<'_, ()> {
        (**self).settle(token, settlement)
    }
}
