//! One of a publisher's delivery loops: reads what is pending in its lanes, takes it to the sink, writes down what became of it.
//!
//! What a crash leaves: before the receiver's word, nothing has happened; after it and before the commit of what became of it, the
//! event is still there and is published again.

use super::counts::Counts;
use super::delivery::{Delivered, Terms, deliver};
use super::holding::{Holding, LoopIndex};
use super::options::PublisherOptions;
use super::queue::{Pending, Queue, Refused, Settlement};
use crate::sink::Sink;
use semel::Environment;
use semel::StoreError;
use semel::background::{Pace, exponential, spread};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// How long to wait for a receiver that cannot be reached: at first,
const SHORTEST_OUTAGE: Duration = Duration::from_millis(100);
/// and at most.
const LONGEST_OUTAGE: Duration = Duration::from_secs(15);

/// How long a round with little in it waits before the next: each costs the store as much as one with a thousand events.
const GATHERING: Duration = Duration::from_millis(20);

/// So often an event may find the receiver unreachable while others reach it. Then it is the event that is the matter.
const SUSPICIONS: u32 = 3;

/// Suspicions that are remembered at most. Forgetting them only means that it takes longer.
const MOST_SUSPECTS: usize = 4_096;

/// What a receiver said is kept up to this length.
const LONGEST_ERROR: usize = 500;

/// What the delivery loops of a publisher share.
pub(crate) struct Shared<S> {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) sink: Arc<S>,
    pub(crate) options: PublisherOptions,
    pub(crate) counts: Arc<Counts>,
    pub(crate) holding: Holding,
    /// Whether it was said that the receiver cannot be reached.
    pub(crate) cut_off: AtomicBool,
}

pub(crate) struct DeliveryLoop<S> {
    index: LoopIndex,
    shared: Arc<Shared<S>>,
    pace: Pace,
    stopped: watch::Receiver<()>,
    woken: watch::Receiver<u64>,
    suspects: HashMap<Uuid, u32>,
    /// Rounds in a row in which the receiver could not be reached.
    outages: u32,
}

/// How a round went.
enum Round {
    /// Something was done, and there is more.
    Went,
    /// Something was done, but not much: the next round is worth more if it waits for company.
    Trickled,
    /// There was nothing to do.
    Idle,
    /// The receiver cannot be reached.
    CutOff,
}

impl<S: Sink> DeliveryLoop<S> {
    pub(crate) fn new(
        index: LoopIndex,
        shared: Arc<Shared<S>>,
        stopped: watch::Receiver<()>,
        woken: watch::Receiver<u64>,
    ) -> Self {
        let pace = Pace::new(shared.options.poll_every, stopped.clone());
        Self { index, shared, pace, stopped, woken, suspects: HashMap::new(), outages: 0 }
    }

    /// Works until it is stopped and deliveries in flight have ended.
    pub(crate) async fn run(mut self) {
        while !self.is_stopped() {
            self.woken.mark_unchanged();
            let round = self.round().await;
            let given_up = match &round {
                Ok(_) => self.shared.holding.give_up(&*self.shared.queue, self.index).await,
                Err(_) => Ok(()),
            };
            match (round, given_up) {
                (Err(error), _) | (_, Err(error)) => {
                    self.pace.pause("outbox publisher", Some(error)).await;
                }
                (Ok(Round::Went), _) => tokio::task::yield_now().await,
                (Ok(Round::Trickled), _) => tokio::time::sleep(GATHERING).await,
                (Ok(Round::Idle), _) => self.rest().await,
                (Ok(Round::CutOff), _) => self.wait_for_receiver().await,
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.has_changed().is_err()
    }

    async fn rest(&mut self) {
        tokio::select! {
            _ = self.pace.pause("outbox publisher", None) => {}
            // An error: nobody can wake it any more.
            woken = self.woken.changed() => if woken.is_err() {
                self.pace.pause("outbox publisher", None).await;
            },
        }
    }

    async fn wait_for_receiver(&mut self) {
        let longer = 2_u32.checked_pow(self.outages).and_then(|times| SHORTEST_OUTAGE.checked_mul(times));
        self.outages = self.outages.saturating_add(1);
        let wait = spread(longer.unwrap_or(LONGEST_OUTAGE).min(LONGEST_OUTAGE), &Environment::default());
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = self.pace.stop() => {}
        }
    }

    async fn round(&mut self) -> Result<Round, StoreError> {
        let shared = Arc::clone(&self.shared);
        let lanes = shared.holding.lanes(self.index);
        if lanes.is_empty() {
            return Ok(Round::Idle);
        }
        let per_lane = shared.options.batch.div_ceil(lanes.len());
        let batch = shared.queue.read(lanes, per_lane).await?;
        let terms = Terms {
            deadline: shared.options.deadline,
            width: shared.options.in_flight.div_ceil(usize::from(self.index.of)),
            outages: self.outages,
            may_begin: {
                let (shared, stopped) = (Arc::clone(&shared), self.stopped.clone());
                Arc::new(move || shared.holding.is_good() && stopped.has_changed().is_ok())
            },
        };
        let delivered = deliver(&shared.sink, batch.events, &terms).await;
        let cut_off = self.look_at(&delivered);
        let settlement = self.settlement(delivered, batch.behind);
        let settled = settlement.len();
        if settled > 0 {
            self.settle(settlement).await;
        }
        Ok(match settled {
            _ if cut_off => Round::CutOff,
            0 => Round::Idle,
            few if few < shared.options.batch / 4 => Round::Trickled,
            _ => Round::Went,
        })
    }

    /// Says what there is to say of the receiver; whether it cannot be reached.
    fn look_at(&mut self, delivered: &Delivered) -> bool {
        if delivered.heard_of_receiver() {
            self.outages = 0;
            if self.shared.cut_off.swap(false, Ordering::Relaxed) {
                tracing::info!("outbox: receiver available again");
            }
            return false;
        }
        let Some((_, error)) = delivered.unreachable.first() else { return false };
        if !self.shared.cut_off.swap(true, Ordering::Relaxed) {
            tracing::warn!(error, "outbox: receiver unavailable, retrying");
        }
        true
    }

    /// What is to be written down.
    fn settlement(&mut self, delivered: Delivered, mut behind: Vec<Pending>) -> Settlement {
        let options = &self.shared.options;
        let heard_of_receiver = delivered.heard_of_receiver();
        let mut refused = delivered.refused;
        let failed = refused.len() + delivered.unreachable.len();
        for pending in &delivered.published {
            self.suspects.remove(&pending.event.id);
        }
        if self.suspects.len() > MOST_SUSPECTS {
            self.suspects.clear();
        }
        for (event, error) in delivered.unreachable.into_iter().filter(|_| heard_of_receiver) {
            let times = self.suspects.entry(event.event.id).or_default();
            *times += 1;
            if *times >= SUSPICIONS {
                self.suspects.remove(&event.event.id);
                refused.push((event, format!("{error}, while other events were delivered")));
            }
        }
        behind.extend(delivered.behind);
        let refused: Vec<Refused> = refused
            .into_iter()
            .map(|(event, error)| {
                let again = event.attempts.saturating_add(1) < options.attempts;
                let retry_in =
                    again.then(|| exponential(options.retry_every, event.attempts, &Environment::default()));
                Refused { error: shortened(&error), retry_in, event }
            })
            .collect();
        let dead = refused.iter().filter(|refused| refused.retry_in.is_none());
        for refused in dead.clone() {
            let Pending { event, attempts, .. } = &refused.event;
            tracing::error!(event_id = %event.id, kind = event.kind, attempts = attempts + 1, error = refused.error,
                "outbox: an event became a dead letter; it and the later events of its aggregate wait for an operator");
        }
        self.shared.counts.add(delivered.published.len(), failed, dead.count());
        Settlement { published: delivered.published, refused, behind }
    }

    /// Writes down what became of events, however long the store takes to come back: nobody else knows it. Whoever is told to stop
    /// meanwhile stops; the events are published again then.
    async fn settle(&mut self, settlement: Settlement) {
        while let Err(error) = self.shared.queue.settle(self.shared.holding.token, settlement.clone()).await {
            if self.pace.pause("outbox publisher", Some(error)).await.stopped() {
                return;
            }
        }
    }
}

/// No longer than is worth keeping, and without what PostgreSQL cannot keep.
fn shortened(error: &str) -> String {
    error.chars().filter(|character| *character != '\0').take(LONGEST_ERROR).collect()
}
