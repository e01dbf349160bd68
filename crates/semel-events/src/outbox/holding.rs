//! The lanes that a publisher holds, and for how long it may believe so.

use super::lane::Lane;
use super::queue::{Queue, Token};
use semel::StoreError;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What a publisher holds. The store's word counts; this is what it said last.
pub(crate) struct Holding {
    pub(crate) token: Token,
    lease: Duration,
    state: Mutex<State>,
    /// One call at a time: an answer that was overtaken would bring back a lane that was given up meanwhile.
    calls: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    held: BTreeSet<Lane>,
    /// More than the fair share: given up as soon as nothing of them is under way.
    surplus: BTreeSet<Lane>,
    /// Nothing is begun after this moment, four fifths into the lease: what is under way then ends with its deadline before the lease
    /// does, which began after the question was asked.
    good_until: Option<Instant>,
}

impl Holding {
    pub(crate) fn new(lease: Duration) -> Self {
        Self { token: Token::random(), lease, state: Mutex::default(), calls: tokio::sync::Mutex::default() }
    }

    /// Renews what is held, and takes what is free.
    pub(crate) async fn beat(&self, queue: &dyn Queue) -> Result<(), StoreError> {
        let _alone = self.calls.lock().await;
        let asked = Instant::now();
        let beat = queue.beat(self.token, self.lease).await?;
        let more = beat.lanes.len().saturating_sub(beat.share);
        let mut state = self.lock();
        state.surplus = beat.lanes.iter().rev().take(more).copied().collect();
        state.held = beat.lanes.into_iter().collect();
        state.good_until = Some(asked + self.lease.mul_f64(0.8));
        Ok(())
    }

    /// Whether something may still be begun.
    pub(crate) fn is_good(&self) -> bool {
        self.lock().is_good()
    }

    /// The lanes of one delivery loop.
    pub(crate) fn lanes(&self, carrier: LoopIndex) -> Vec<Lane> {
        let state = self.lock();
        if !state.is_good() {
            return Vec::new();
        }
        state.held.difference(&state.surplus).copied().filter(|lane| carrier.carries(*lane)).collect()
    }

    /// Gives up the surplus lanes of a delivery loop, which has nothing of them in flight.
    pub(crate) async fn give_up(&self, queue: &dyn Queue, carrier: LoopIndex) -> Result<(), StoreError> {
        if !self.lock().surplus.iter().any(|lane| carrier.carries(*lane)) {
            return Ok(());
        }
        let _alone = self.calls.lock().await;
        let lanes: Vec<Lane> = {
            let mut state = self.lock();
            let lanes: Vec<Lane> =
                state.surplus.iter().copied().filter(|lane| carrier.carries(*lane)).collect();
            for lane in &lanes {
                state.held.remove(lane);
                state.surplus.remove(lane);
            }
            lanes
        };
        queue.release(self.token, lanes).await
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is made in one go: a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_good(&self) -> bool {
        self.good_until.is_some_and(|until| Instant::now() < until)
    }
}

/// One of so many delivery loops.
#[derive(Clone, Copy)]
pub(crate) struct LoopIndex {
    pub(crate) number: u8,
    pub(crate) of: u8,
}

impl LoopIndex {
    fn carries(self, lane: Lane) -> bool {
        lane % self.of == self.number
    }
}
