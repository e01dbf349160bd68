//! Gathers what concurrent requests want of the store at the same moment into one call.
//!
//! One call is one commit, one fsync and one round trip, however many requests share it. A lone request never waits for
//! company: while fewer calls than the store has lanes are under way, it is sent at once, and what comes in the meantime makes up
//! the next batch.

use crate::identity::RecordKey;
use crate::observe::{Observer, StoreCall};
use crate::record::{Draft, Expected, Record};
use crate::store::{Answer, Created, Store, StoreError, StoreFuture, Swap, Swapped, unless_it_panics};
use crate::time::Now;
use crate::trace::{Ride, note_call};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Items per call. More would make the first of a batch wait for the last without saving much: an fsync shared by 512 is free.
const MAX_BATCH: usize = 512;

/// Items waiting at most. A store that stands still must not fill the memory: past this, requests are refused at once.
const MAX_WAITING: usize = 64 * 1024;

/// The store's calls, batched. Cheap to clone.
#[derive(Clone)]
pub struct Batcher {
    creates: Arc<Lane<Draft, Created>>,
    swaps: Arc<Lane<Swap, Swapped>>,
    removes: Arc<Lane<Expected, Swapped>>,
    reads: Arc<Lane<RecordKey, Option<Record>>>,
    timeout: Duration,
}

impl Batcher {
    /// Batches calls to `store`. No call takes longer than `timeout`: what has not begun by then is withdrawn
    /// ([`StoreError::Unavailable`]), what has begun counts as lost ([`StoreError::Lost`]).
    #[must_use]
    pub fn new(store: &Arc<dyn Store>, timeout: Duration) -> Self {
        Self::observed(store, timeout, None)
    }

    /// The same, with somebody who is told of every call.
    #[must_use]
    pub fn observed(store: &Arc<dyn Store>, timeout: Duration, observer: Option<&Arc<dyn Observer>>) -> Self {
        let way = |call| Way { store: Arc::clone(store), call, timeout, observer: observer.cloned() };
        Self {
            creates: Lane::new(way(StoreCall::Create), |store, batch| store.create(batch)),
            swaps: Lane::new(way(StoreCall::Swap), |store, batch| store.swap(batch)),
            removes: Lane::new(way(StoreCall::Remove), |store, batch| store.remove(batch)),
            reads: Lane::new(way(StoreCall::Read), |store, batch| store.read(batch)),
            timeout,
        }
    }

    /// [`Store::create`] of one draft.
    ///
    /// # Errors
    /// As the store's, and [`StoreError::Unavailable`] or [`StoreError::Lost`] after the time-out.
    pub async fn create(&self, draft: &Draft) -> Result<(Now, Created), StoreError> {
        self.creates.submit(draft, self.timeout).await
    }

    /// [`Store::swap`] of one record.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn swap(&self, swap: &Swap) -> Result<(Now, Swapped), StoreError> {
        self.swaps.submit(swap, self.timeout).await
    }

    /// [`Store::remove`] of one record.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn remove(&self, expected: &Expected) -> Result<(Now, Swapped), StoreError> {
        self.removes.submit(expected, self.timeout).await
    }

    /// [`Store::read`] of one key.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn read(&self, key: &RecordKey) -> Result<(Now, Option<Record>), StoreError> {
        self.reads.submit(key, self.timeout).await
    }
}

type Call<I, O> = for<'a> fn(&'a dyn Store, Vec<I>) -> StoreFuture<'a, Answer<O>>;
type Reply<O> = oneshot::Sender<(Result<(Now, O), Unanswered>, Option<Ride>)>;

/// Why there is no answer to one item.
#[derive(Clone)]
enum Unanswered {
    Failed(StoreError),
    /// Some item of the batch met a damaged record. It may have been another one: each is to be sent alone.
    Apart,
}

/// How one kind of call gets to the store.
struct Way {
    store: Arc<dyn Store>,
    call: StoreCall,
    timeout: Duration,
    observer: Option<Arc<dyn Observer>>,
}

impl Way {
    /// Sends a batch of this size; no longer than the time-out. Where nobody observes, nothing is told of its ride.
    async fn go<T>(&self, size: usize, call: StoreFuture<'_, T>) -> (Result<T, StoreError>, Option<Ride>) {
        let begun = self.observer.as_ref().map(|observer| {
            observer.batch(self.call, size);
            (observer, Instant::now())
        });
        let answer = tokio::time::timeout(self.timeout, unless_it_panics(call))
            .await
            .unwrap_or_else(|_| Err(StoreError::Lost("the store did not answer in time".into())));
        let ride = begun.map(|(observer, begun)| {
            let took = begun.elapsed();
            observer.store_call(self.call, took, answer.is_ok());
            Ride { begun: begun.into_std(), took, batch: size }
        });
        (answer, ride)
    }
}

/// One kind of call.
struct Lane<I, O> {
    way: Way,
    call: Call<I, O>,
    width: usize,
    queue: Mutex<Queue<I, O>>,
    /// Whose turn it is to be sent alone.
    alone: tokio::sync::Mutex<()>,
}

struct Queue<I, O> {
    waiting: VecDeque<Waiting<I, O>>,
    next_number: u64,
    in_flight: usize,
}

struct Waiting<I, O> {
    number: u64,
    item: I,
    reply: Reply<O>,
}

impl<I: Clone + Send + 'static, O: Send + 'static> Lane<I, O> {
    fn new(way: Way, call: Call<I, O>) -> Arc<Self> {
        Arc::new(Self {
            width: way.store.lanes().max(1),
            way,
            call,
            queue: Mutex::new(Queue { waiting: VecDeque::new(), next_number: 0, in_flight: 0 }),
            alone: tokio::sync::Mutex::new(()),
        })
    }

    async fn submit(self: &Arc<Self>, item: &I, timeout: Duration) -> Result<(Now, O), StoreError> {
        let (reply, answer) = oneshot::channel();
        let (number, idle_lane) = {
            let mut queue = self.lock();
            if queue.waiting.len() >= MAX_WAITING {
                return Err(StoreError::Unavailable("too many requests wait for the store".into()));
            }
            let number = queue.next_number;
            queue.next_number += 1;
            queue.waiting.push_back(Waiting { number, item: item.clone(), reply });
            let idle_lane = queue.in_flight < self.width;
            queue.in_flight += usize::from(idle_lane);
            (number, idle_lane)
        };
        if idle_lane {
            // On a task of its own: the request that happened to start the batch may be cancelled, the others in it must not.
            tokio::spawn(self.running().run());
        }
        match tokio::time::timeout(timeout, answer).await {
            Ok(Ok((answer, ride))) => {
                note_call(self.way.call, ride, answer.is_ok());
                match answer {
                    Ok(answer) => Ok(answer),
                    Err(Unanswered::Failed(error)) => Err(error),
                    Err(Unanswered::Apart) => self.send_alone(item, timeout).await,
                }
            }
            Ok(Err(_)) => Err(StoreError::Lost("the batch was abandoned".into())),
            Err(_) if self.withdraw(number) => {
                Err(StoreError::Unavailable("the store did not get to it in time".into()))
            }
            Err(_) => Err(StoreError::Lost("the store did not answer in time".into())),
        }
    }

    /// Sends an item whose batch met a damaged record. One at a time: a store that puts what comes together into one transaction would
    /// meet all the damage of the batch again.
    async fn send_alone(&self, item: &I, timeout: Duration) -> Result<(Now, O), StoreError> {
        let Ok(_turn) = tokio::time::timeout(timeout, self.alone.lock()).await else {
            return Err(StoreError::Unavailable("the store did not get to it in time".into()));
        };
        let (answer, ride) = self.send(vec![item.clone()]).await;
        note_call(self.way.call, ride, answer.is_ok());
        let mut answer = answer?;
        let now = answer.moment();
        answer.items.pop().map(|item| (now, item)).ok_or_else(unfit)
    }

    /// Made before its task is: one that a runtime drops before it has begun counts as cut off, too.
    fn running(self: &Arc<Self>) -> Running<I, O> {
        Running { lane: Arc::clone(self), begun: false, done: false }
    }

    async fn send(&self, items: Vec<I>) -> (Result<Answer<O>, StoreError>, Option<Ride>) {
        let count = items.len();
        let (answer, ride) = self.way.go(count, (self.call)(&*self.way.store, items)).await;
        let fits = |answer: Answer<O>| if answer.items.len() == count { Ok(answer) } else { Err(unfit()) };
        (answer.and_then(fits), ride)
    }

    fn next_batch(&self) -> Option<(Vec<I>, Vec<Reply<O>>)> {
        let mut queue = self.lock();
        let count = queue.waiting.len().min(MAX_BATCH);
        if count == 0 {
            queue.in_flight -= 1;
            return None;
        }
        // Of the right size: a record is large, and most batches are small.
        let (mut items, mut replies) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for waiting in queue.waiting.drain(..count) {
            items.push(waiting.item);
            replies.push(waiting.reply);
        }
        Some((items, replies))
    }

    /// Takes back an item that no call has begun with.
    fn withdraw(&self, number: u64) -> bool {
        let mut queue = self.lock();
        match queue.waiting.binary_search_by_key(&number, |waiting| waiting.number) {
            Ok(index) => queue.waiting.remove(index).is_some(),
            Err(_) => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<I, O>> {
        // Nothing that runs under this lock can leave the queue half-changed, so a poisoned one is as good as any.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lane's task. Cut off by a store that panics, or by a runtime that ends, its batch is lost; the ones after it must not be.
struct Running<I: Clone + Send + 'static, O: Send + 'static> {
    lane: Arc<Lane<I, O>>,
    begun: bool,
    done: bool,
}

impl<I: Clone + Send + 'static, O: Send + 'static> Running<I, O> {
    /// Sends batch after batch until nothing waits.
    async fn run(mut self) {
        self.begun = true;
        while let Some((items, replies)) = self.lane.next_batch() {
            let count = items.len();
            let (answer, ride) = self.lane.send(items).await;
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

impl<I: Clone + Send + 'static, O: Send + 'static> Drop for Running<I, O> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut queue = self.lane.lock();
        if self.begun && std::thread::panicking() && !queue.waiting.is_empty() {
            // A runtime that is going down drops it here and now, and it takes the lock then.
            drop(queue);
            tokio::spawn(self.lane.running().run());
        } else {
            queue.in_flight -= 1;
        }
    }
}

fn unfit() -> StoreError {
    StoreError::Lost("the store's answer does not fit the batch".into())
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
