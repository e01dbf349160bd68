//! How a publisher works.

use std::time::Duration;

/// How a [`Publisher`](super::Publisher) works.
#[derive(Clone, Debug)]
pub struct PublisherOptions {
    /// How long after a publisher's death the others wait before they take over what it held. Default 30 s, at least 1 s.
    pub lease: Duration,
    /// How often it renews its lease, and lanes are divided again among the publishers. Default 5 s; never more than a quarter of the lease.
    pub renew_every: Duration,
    /// How long after one look into an empty outbox the next one comes. Default 200 ms.
    pub poll_every: Duration,
    /// How many events are read at a time, by each of four that work side by side. Default 1,024.
    pub batch: usize,
    /// How many events are on their way to the receiver at most. Default 1,024.
    pub in_flight: usize,
    /// How long the receiver has to confirm an event. Default 5 s; never more than a fifth of the lease, which is what is left of it
    /// when the last event is begun.
    pub deadline: Duration,
    /// How often the receiver may refuse an event before it is a dead letter. Default 12, at least 1.
    pub attempts: u32,
    /// How long after its first refusal an event is tried again: then twice as long each time, up to an hour, and some more by
    /// chance. Default 5 s.
    pub retry_every: Duration,
    /// How long a call to the store may take. Default 5 s.
    pub store_timeout: Duration,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            renew_every: Duration::from_secs(5),
            poll_every: Duration::from_millis(200),
            batch: 1_024,
            in_flight: 1_024,
            deadline: Duration::from_secs(5),
            attempts: 12,
            retry_every: Duration::from_secs(5),
            store_timeout: Duration::from_secs(5),
        }
    }
}

impl PublisherOptions {
    pub(super) fn in_bounds(mut self) -> Self {
        self.lease = self.lease.max(Duration::from_secs(1));
        self.renew_every = self.renew_every.min(self.lease / 4);
        self.deadline = self.deadline.min(self.lease / 5);
        self.batch = self.batch.max(1);
        self.in_flight = self.in_flight.max(1);
        self.attempts = self.attempts.max(1);
        self
    }
}
