//! Messages on their way through a handler: one after the other within an aggregate, side by side otherwise.

use super::delivery::Delivery;
use super::failure::Failure;
use super::handler::Handler;
use super::options::ConsumerOptions;
use semel::Environment;
use semel::background::spread;
use semel::catch_panic::{Panicked, catch_panic};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

/// The longest pause before a message is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What can be said to a broker about one delivery.
pub(super) trait Receipt: Send + Sync + 'static {
    /// How often the broker wants to hear that it is still being worked on; `None`: never.
    fn keep_every(&self) -> Option<Duration>;

    /// Says that it is still being worked on.
    fn keep(&self) -> impl Future<Output = ()> + Send;

    /// Acknowledges it; with `sure`, waits for the broker's word. Where that fails, it is delivered again.
    fn done(&self, sure: bool) -> impl Future<Output = Result<(), String>> + Send;

    /// Puts it where operators find it, and only then takes it from the queue. May be done twice.
    fn set_aside(&self, why: &str) -> impl Future<Output = Result<(), String>> + Send;

    /// Gives it back, for another consumer or for later.
    fn give_back(&self) -> impl Future<Output = ()> + Send;
}

/// A delivery, and what to do with it.
pub(super) struct ReceivedMessage<R> {
    /// What makes no sense is set aside at once.
    pub(super) delivery: Result<Delivery, String>,
    /// How often the broker has delivered it, this time included; 0 where it does not count.
    pub(super) deliveries: u64,
    pub(super) receipt: R,
}

/// The messages that a consumer holds.
pub(super) struct InOrder<H, R> {
    handler: Arc<H>,
    options: ConsumerOptions,
    running: JoinSet<()>,
    /// Which aggregate each running task is at.
    aggregates: HashMap<Id, String>,
    /// What waits for its aggregate to be free. There is an entry, if an empty one, for each aggregate that is not.
    waiting: HashMap<String, VecDeque<ReceivedMessage<R>>>,
    held: usize,
    stop: watch::Sender<bool>,
}

impl<H: Handler, R: Receipt> InOrder<H, R> {
    pub(super) fn new(handler: Arc<H>, options: ConsumerOptions) -> Self {
        Self {
            handler,
            options,
            running: JoinSet::new(),
            aggregates: HashMap::new(),
            waiting: HashMap::new(),
            held: 0,
            stop: watch::Sender::new(false),
        }
    }

    /// How many messages are here.
    #[cfg(feature = "nats")]
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Takes a message in.
    pub(super) fn accept(&mut self, message: ReceivedMessage<R>) {
        self.held += 1;
        // What makes no sense has no aggregate, and nobody waits behind it.
        let aggregate = message.delivery.as_ref().map_or("", |delivery| &delivery.aggregate).to_owned();
        if message.delivery.is_ok() {
            if let Some(waiting) = self.waiting.get_mut(&aggregate) {
                waiting.push_back(message);
                return;
            }
            self.waiting.insert(aggregate.clone(), VecDeque::new());
        }
        self.start(aggregate, message);
    }

    fn start(&mut self, aggregate: String, message: ReceivedMessage<R>) {
        let sense = message.delivery.is_ok();
        let handling = Handling {
            handler: Arc::clone(&self.handler),
            options: self.options,
            stopped: self.stop.subscribe(),
        };
        let task = self.running.spawn(handling.handle_to_the_end(message));
        if sense {
            self.aggregates.insert(task.id(), aggregate);
        }
    }

    /// Waits until one is through, and starts the next one of its aggregate. Never ready while nothing runs.
    pub(super) async fn one_through(&mut self) {
        let id = match self.running.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            // A mistake of ours: the message is delivered again.
            Some(Err(error)) => error.id(),
            None => return std::future::pending().await,
        };
        self.held -= 1;
        let Some(aggregate) = self.aggregates.remove(&id) else { return };
        match self.waiting.get_mut(&aggregate).and_then(VecDeque::pop_front) {
            Some(next) => self.start(aggregate, next),
            None => drop(self.waiting.remove(&aggregate)),
        }
    }

    /// Tells the broker that what waits here is not lost. What runs tells it by itself.
    #[cfg(feature = "nats")]
    pub(super) async fn keep_waiting(&self) {
        for message in self.waiting.values().flatten() {
            message.receipt.keep().await;
        }
    }

    /// Gives back what waits, and lets what runs come to its end.
    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        for message in self.waiting.drain().flat_map(|(_, waiting)| waiting) {
            message.receipt.give_back().await;
        }
        while self.running.join_next().await.is_some() {}
    }
}

/// The way of one message through its handler.
struct Handling<H> {
    handler: Arc<H>,
    options: ConsumerOptions,
    stopped: watch::Receiver<bool>,
}

/// What comes after a try.
enum Next {
    Again,
    SetAside(String),
}

impl<H: Handler> Handling<H> {
    async fn handle_to_the_end<R: Receipt>(mut self, message: ReceivedMessage<R>) {
        let ReceivedMessage { delivery, deliveries, receipt } = message;
        let delivery = match delivery {
            Ok(delivery) => delivery,
            Err(why) => return self.set_aside(&receipt, "(no message id)", &why).await,
        };
        let id = delivery.id.to_string();
        if deliveries > u64::from(self.options.deliveries) {
            let why = format!("delivered {deliveries} times without success");
            return self.set_aside(&receipt, &id, &why).await;
        }
        let (mut failures, mut pauses) = (0, 0);
        loop {
            match kept(&receipt, self.try_once(delivery.clone())).await {
                Ok(()) => {
                    // At the end of a consumer nobody hears of an acknowledgement that got lost: so wait for it.
                    let ending = *self.stopped.borrow();
                    if let Err(why) = receipt.done(ending).await {
                        tracing::debug!(%id, why, "handled but not acknowledged: the redelivery will be recognised");
                    }
                    return;
                }
                Err(failure) => match self.judge(&id, &delivery.kind, failure, &mut failures) {
                    Next::Again => {}
                    Next::SetAside(why) => return self.set_aside(&receipt, &id, &why).await,
                },
            }
            pauses += 1;
            if kept(&receipt, self.pause(pauses)).await {
                return receipt.give_back().await;
            }
        }
    }

    async fn try_once(&self, delivery: Delivery) -> Result<(), Failure> {
        let limit = self.options.time_limit;
        let tried = tokio::time::timeout(limit, catch_handler_panic(self.handler.handle(delivery))).await;
        tried.unwrap_or_else(|_| Err(Failure::Failed(format!("the handler took longer than {limit:?}"))))
    }

    fn judge(&self, id: &str, kind: &str, failure: Failure, failures: &mut u32) -> Next {
        match failure {
            Failure::Refused(why) => Next::SetAside(why),
            Failure::NotNow(why) => {
                tracing::info!(id, kind, why, "message not handled, retrying");
                Next::Again
            }
            Failure::Failed(why) => {
                *failures += 1;
                if *failures >= self.options.tries {
                    return Next::SetAside(why);
                }
                tracing::warn!(id, kind, failures, why, "message failed, retrying");
                Next::Again
            }
        }
    }

    async fn set_aside<R: Receipt>(&mut self, receipt: &R, id: &str, why: &str) {
        let mut pauses = 0;
        loop {
            match kept(receipt, receipt.set_aside(why)).await {
                Ok(()) => {
                    return tracing::error!(id, why, "message set aside as a dead letter");
                }
                Err(trouble) => tracing::warn!(id, why, trouble, "message not set aside, retrying"),
            }
            pauses += 1;
            if kept(receipt, self.pause(pauses)).await {
                return receipt.give_back().await;
            }
        }
    }

    /// Whether the consumer was stopped meanwhile.
    async fn pause(&mut self, pauses: u32) -> bool {
        let doubled = 2_u32.checked_pow(pauses - 1).and_then(|times| self.options.pause.checked_mul(times));
        let pause = doubled.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE);
        tokio::select! {
            () = tokio::time::sleep(spread(pause, &Environment::default())) => false,
            // An error means that the consumer is gone altogether.
            _ = self.stopped.wait_for(|stopped| *stopped) => true,
        }
    }
}

/// Does the work, and tells the broker meanwhile that it is being done.
async fn kept<T>(receipt: &impl Receipt, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    let Some(every) = receipt.keep_every() else { return work.await };
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(every) => receipt.keep().await,
        }
    }
}

/// The work; a panic in it is a failure like any other.
async fn catch_handler_panic(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    catch_panic(work).await.unwrap_or_else(|Panicked| Err(Failure::Failed("the handler panicked".into())))
}
