//! Gathers what concurrent requests want of the store at the same moment into one call.
//!
//! One call is one commit, one fsync and one round trip, however many requests share it. A lone request never waits for
//! company: while fewer batches are in flight than the store can work on at once, it is sent at once, and what comes in the meantime makes up
//! the next batch.

use super::call::{Caller, access};
use super::{Answer, Created, Store, StoreError, StoreFuture, Swap, Swapped};
use crate::identity::RecordKey;
use crate::observe::StoreCall;
use crate::record::{Draft, Expected, Record};
use crate::time::Now;
use crate::trace::{Ride, note_call};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Items per call. More would make the first of a batch wait for the last without saving much: an fsync shared by 512 is free.
const MAX_BATCH: usize = 512;

/// Items waiting at most. A store that stands still must not fill the memory: past this, requests are refused at once.
const MAX_WAITING: usize = 64 * 1024;

/// The store's calls that are batched, one queue for each kind. Cheap to clone.
#[derive(Clone)]
pub(super) struct Batches {
    creates: Arc<Queue<Draft, Created>>,
    swaps: Arc<Queue<Swap, Swapped>>,
    removes: Arc<Queue<Expected, Swapped>>,
    reads: Arc<Queue<RecordKey, Option<Record>>>,
}

impl Batches {
    /// Batches calls by `caller`. What has not begun within its timeout is withdrawn ([`StoreError::Unavailable`]); a write that has
    /// begun is [`StoreError::Lost`].
    pub(super) fn new(caller: &Arc<Caller>) -> Self {
        Self {
            creates: Queue::new(caller, StoreCall::Create, |store, batch| store.create(batch)),
            swaps: Queue::new(caller, StoreCall::Swap, |store, batch| store.swap(batch)),
            removes: Queue::new(caller, StoreCall::Remove, |store, batch| store.remove(batch)),
            reads: Queue::new(caller, StoreCall::Read, |store, batch| store.read(batch)),
        }
    }

    pub(super) async fn create(&self, draft: &Draft) -> Result<(Now, Created), StoreError> {
        self.creates.submit(draft).await
    }

    pub(super) async fn swap(&self, swap: &Swap) -> Result<(Now, Swapped), StoreError> {
        self.swaps.submit(swap).await
    }

    pub(super) async fn remove(&self, expected: &Expected) -> Result<(Now, Swapped), StoreError> {
        self.removes.submit(expected).await
    }

    pub(super) async fn read(&self, key: &RecordKey) -> Result<(Now, Option<Record>), StoreError> {
        self.reads.submit(key).await
    }
}

/// Begins the call for a batch.
type BatchCall<I, O> = for<'a> fn(&'a dyn Store, Vec<I>) -> StoreFuture<'a, Answer<O>>;
type Reply<O> = oneshot::Sender<(Result<(Now, O), Unanswered>, Option<Ride>)>;

/// Why there is no answer to one item.
#[derive(Clone)]
enum Unanswered {
    Failed(StoreError),
    /// Some item of the batch met a damaged record. It may have been another one: each is to be sent alone.
    Apart,
}

/// The queue of one kind of call.
struct Queue<I, O> {
    caller: Arc<Caller>,
    kind: StoreCall,
    call: BatchCall<I, O>,
    max_concurrent: usize,
    state: Mutex<State<I, O>>,
    /// Whose turn it is to be sent alone.
    alone: tokio::sync::Mutex<()>,
}

struct State<I, O> {
    waiting: VecDeque<QueuedItem<I, O>>,
    next_number: u64,
    in_flight: usize,
}

struct QueuedItem<I, O> {
    number: u64,
    item: I,
    reply: Reply<O>,
}

impl<I: Clone + Send + 'static, O: Send + 'static> Queue<I, O> {
    fn new(caller: &Arc<Caller>, kind: StoreCall, call: BatchCall<I, O>) -> Arc<Self> {
        Arc::new(Self {
            max_concurrent: caller.max_concurrent_batches(),
            caller: Arc::clone(caller),
            kind,
            call,
            state: Mutex::new(State { waiting: VecDeque::new(), next_number: 0, in_flight: 0 }),
            alone: tokio::sync::Mutex::new(()),
        })
    }

    async fn submit(self: &Arc<Self>, item: &I) -> Result<(Now, O), StoreError> {
        let timeout = self.caller.timeout;
        let (reply, answer) = oneshot::channel();
        let (number, starts_batch) = {
            let mut state = self.lock();
            if state.waiting.len() >= MAX_WAITING {
                return Err(StoreError::Unavailable("too many requests are waiting for the store".into()));
            }
            let number = state.next_number;
            state.next_number += 1;
            state.waiting.push_back(QueuedItem { number, item: item.clone(), reply });
            let starts_batch = state.in_flight < self.max_concurrent;
            state.in_flight += usize::from(starts_batch);
            (number, starts_batch)
        };
        if starts_batch {
            // On a task of its own: the request that happened to start the batch may be cancelled, the others in it must not.
            tokio::spawn(self.sender().run());
        }
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok((answer, ride))) => {
                note_call(self.kind, ride, answer.is_ok());
                match answer {
                    Ok(answer) => Ok(answer),
                    Err(Unanswered::Failed(error)) => Err(error),
                    Err(Unanswered::Apart) => self.send_alone(item).await,
                }
            }
            Ok(Err(_)) => Err(access(self.kind).unanswered("the batch was abandoned")),
            Err(_) if self.withdraw(number) => {
                Err(StoreError::Unavailable("the call timed out in the queue of the store".into()))
            }
            Err(_) => Err(access(self.kind).too_late()),
        }
    }

    /// Sends an item whose batch met a damaged record. One at a time: a store that puts what comes together into one transaction would
    /// meet all the damage of the batch again.
    async fn send_alone(&self, item: &I) -> Result<(Now, O), StoreError> {
        let Ok(_turn) = tokio::time::timeout(self.caller.timeout, self.alone.lock()).await else {
            return Err(StoreError::Unavailable("the call timed out in the queue of the store".into()));
        };
        let (answer, ride) = self.send(vec![item.clone()]).await;
        note_call(self.kind, ride, answer.is_ok());
        let mut answer = answer?;
        let now = answer.moment();
        answer.items.pop().map(|item| (now, item)).ok_or_else(|| self.unfit())
    }

    /// Made before its task is: one that a runtime drops before it has begun counts as cut off, too.
    fn sender(self: &Arc<Self>) -> Sender<I, O> {
        Sender { queue: Arc::clone(self), begun: false, done: false }
    }

    async fn send(&self, items: Vec<I>) -> (Result<Answer<O>, StoreError>, Option<Ride>) {
        let count = items.len();
        let (answer, ride) = self.caller.batch(self.kind, count, |store| (self.call)(store, items)).await;
        let fits =
            |answer: Answer<O>| if answer.items.len() == count { Ok(answer) } else { Err(self.unfit()) };
        (answer.and_then(fits), ride)
    }

    fn unfit(&self) -> StoreError {
        access(self.kind).unanswered("the store's answer does not fit the batch")
    }

    fn next_batch(&self) -> Option<(Vec<I>, Vec<Reply<O>>)> {
        let mut state = self.lock();
        let count = state.waiting.len().min(MAX_BATCH);
        if count == 0 {
            state.in_flight -= 1;
            return None;
        }
        // Of the right size: a record is large, and most batches are small.
        let (mut items, mut replies) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for queued in state.waiting.drain(..count) {
            items.push(queued.item);
            replies.push(queued.reply);
        }
        Some((items, replies))
    }

    /// Takes back an item that no call has begun with.
    fn withdraw(&self, number: u64) -> bool {
        let mut state = self.lock();
        match state.waiting.binary_search_by_key(&number, |queued| queued.number) {
            Ok(index) => state.waiting.remove(index).is_some(),
            Err(_) => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<I, O>> {
        // A poisoned lock is safe to use: nothing under it leaves the state half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that sends batches of a queue. Cut off by a store that panics, or by a runtime that ends, its batch is lost; the ones after it must not be.
struct Sender<I: Clone + Send + 'static, O: Send + 'static> {
    queue: Arc<Queue<I, O>>,
    begun: bool,
    done: bool,
}

impl<I: Clone + Send + 'static, O: Send + 'static> Sender<I, O> {
    /// Sends batch after batch until nothing waits.
    async fn run(mut self) {
        self.begun = true;
        while let Some((items, replies)) = self.queue.next_batch() {
            let count = items.len();
            let (answer, ride) = self.queue.send(items).await;
            let outcome = match answer {
                Ok(answer) => Ok(answer),
                // Errors are whole, but a damaged record is one item's: the others are not to hear of it.
                Err(StoreError::Damaged(_)) if count > 1 => Err(Unanswered::Apart),
                Err(error) => Err(Unanswered::Failed(error)),
            };
            hand_out(outcome, ride, replies);
        }
        self.done = true;
    }
}

impl<I: Clone + Send + 'static, O: Send + 'static> Drop for Sender<I, O> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut state = self.queue.lock();
        if self.begun && std::thread::panicking() && !state.waiting.is_empty() {
            // A runtime that is going down drops it here and now, and it takes the lock then.
            drop(state);
            tokio::spawn(self.queue.sender().run());
        } else {
            state.in_flight -= 1;
        }
    }
}

fn hand_out<O>(outcome: Result<Answer<O>, Unanswered>, ride: Option<Ride>, replies: Vec<Reply<O>>) {
    match outcome {
        Ok(answer) => {
            let now = answer.moment();
            for (reply, item) in replies.into_iter().zip(answer.items) {
                let _ = reply.send((Ok((now, item)), ride));
            }
        }
        Err(unanswered) => {
            for reply in replies {
                let _ = reply.send((Err(unanswered.clone()), ride));
            }
        }
    }
}
