//! The threads that serve connections: one for each core, each with a runtime of its own.
//!
//! A connection stays on one thread, with its requests, what is executed for them and the connections to the service that they use. What
//! all share is the store, whose batches are for requests of any thread, and counts. Nothing on a request's way may take long without
//! waiting for something: whoever shares the thread waits for it.
//!
//! Streams of one HTTP/2 connection are dealt out to all threads: a proxy in front may send everything over one.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// How long a core thread may leave a sign of life unanswered. One that is merely busy answers within milliseconds; a machine that stands still
/// for a while must not have everything restarted.
const STUCK: Duration = Duration::from_secs(10);

/// How long whoever asks waits for the signs of life. Probes seldom wait for more than a second themselves.
const PATIENCE: Duration = Duration::from_millis(500);

/// As many as there are cores for us.
static COUNT: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// How many threads there are.
pub(crate) fn count() -> usize {
    *COUNT
}

/// Index of the current core thread, below [`count`]; 0 on any other thread.
pub(crate) fn here() -> usize {
    HERE.get()
}

/// The threads. They end, with everything on them, when this is dropped.
pub(crate) struct CoreThreads {
    threads: Arc<[CoreThread]>,
    _ends: Vec<oneshot::Sender<()>>,
}

struct CoreThread {
    runtime: Handle,
    connections: AtomicUsize,
    /// The sign of life that was asked for last. There is never more than one under way.
    asked: Mutex<Option<SignOfLife>>,
}

struct SignOfLife {
    since: Instant,
    given: watch::Receiver<bool>,
}

/// Asks the core threads for signs of life. Clones ask the same threads.
#[derive(Clone)]
pub(crate) struct SignsOfLife(Arc<[CoreThread]>);

impl SignsOfLife {
    /// The names of the core threads that are stuck: they have not done anything for 10 s though they were asked to.
    pub(crate) async fn stuck(&self) -> Vec<String> {
        let signs: Vec<_> = self.0.iter().map(CoreThread::sign_of_life).collect();
        let until = Instant::now() + PATIENCE;
        let mut stuck = Vec::new();
        for (number, (since, mut given)) in signs.into_iter().enumerate() {
            // An error: the thread has ended, as everything has to.
            let answered = tokio::time::timeout_at(until, given.wait_for(|given| *given)).await;
            if answered.is_err() && since.elapsed() >= STUCK {
                stuck.push(name(number));
            }
        }
        stuck
    }
}

fn name(number: usize) -> String {
    format!("semel-core-{number}")
}

impl CoreThreads {
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start() -> io::Result<Self> {
        let started = (0..count()).map(CoreThread::start).collect::<io::Result<Vec<_>>>()?;
        let (threads, ends): (Vec<_>, _) = started.into_iter().unzip();
        Ok(Self { threads: threads.into(), _ends: ends })
    }

    /// Whoever asks them for signs of life.
    pub(crate) fn signs_of_life(&self) -> SignsOfLife {
        SignsOfLife(Arc::clone(&self.threads))
    }

    /// A place for a connection, where there are fewest.
    pub(crate) fn place(&self) -> Assignment {
        let counted = self.threads.iter().map(|thread| thread.connections.load(Relaxed));
        let number =
            counted.enumerate().min_by_key(|(_, connections)| *connections).map_or(0, |(number, _)| number);
        self.threads[number].connections.fetch_add(1, Relaxed);
        Assignment { threads: Arc::clone(&self.threads), number }
    }
}

impl CoreThread {
    fn start(number: usize) -> io::Result<(Self, oneshot::Sender<()>)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new().name(name(number)).spawn(move || {
            HERE.set(number);
            runtime.block_on(async { drop(ended.await) });
            // What blocks meanwhile, for a name to be looked up say, is not waited for.
            runtime.shutdown_background();
        })?;
        Ok((Self { runtime: handle, connections: AtomicUsize::new(0), asked: Mutex::default() }, end))
    }

    /// The sign of life that is under way, or a new one; and since when it is.
    fn sign_of_life(&self) -> (Instant, watch::Receiver<bool>) {
        // Only whole values are set under the lock: a poisoned one is as good as any.
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(SignOfLife { since, given }) = &*asked
            && !*given.borrow()
            && given.has_changed().is_ok()
        {
            return (*since, given.clone());
        }
        let (give, given) = watch::channel(false);
        self.runtime.spawn(async move { give.send_replace(true) });
        let since = Instant::now();
        *asked = Some(SignOfLife { since, given: given.clone() });
        (since, given)
    }
}

/// A connection's place on a thread, until it is dropped.
pub(crate) struct Assignment {
    threads: Arc<[CoreThread]>,
    number: usize,
}

impl Assignment {
    /// Runs the connection there.
    pub(crate) fn run<F>(self, connection: impl FnOnce(RoundRobinExecutor) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let executor = RoundRobinExecutor {
            threads: Arc::clone(&self.threads),
            next: Arc::new(AtomicUsize::new(self.number)),
        };
        self.threads[self.number].runtime.clone().spawn(async move {
            connection(executor).await;
            drop(self);
        });
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.threads[self.number].connections.fetch_sub(1, Relaxed);
    }
}

/// Deals out the streams of one connection, its own thread first.
#[derive(Clone)]
pub(crate) struct RoundRobinExecutor {
    threads: Arc<[CoreThread]>,
    next: Arc<AtomicUsize>,
}

impl<F> hyper::rt::Executor<F> for RoundRobinExecutor
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let number = self.next.fetch_add(1, Relaxed) % self.threads.len();
        self.threads[number].runtime.spawn(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::rt::Executor as _;
    use std::collections::BTreeSet;
    use tokio::sync::mpsc;

    /// CoreThreads, however many cores this machine has.
    fn threads(count: usize) -> CoreThreads {
        let (threads, ends): (Vec<_>, _) =
            (0..count).map(|number| CoreThread::start(number).unwrap()).unzip();
        CoreThreads { threads: threads.into(), _ends: ends }
    }

    #[tokio::test]
    async fn a_connection_goes_where_there_are_fewest_and_stays_there() {
        let threads = threads(3);
        let (tell, mut told) = mpsc::unbounded_channel();
        let held: Vec<_> = (0..6)
            .map(|connection| {
                let (tell, (hold, held)) = (tell.clone(), oneshot::channel::<()>());
                threads.place().run(async move |_| {
                    let begun = here();
                    drop(held.await);
                    tell.send((connection, begun, here())).unwrap();
                });
                Some(hold)
            })
            .collect();
        let counted =
            || threads.threads.iter().map(|thread| thread.connections.load(Relaxed)).collect::<Vec<_>>();
        assert_eq!(counted(), [2, 2, 2]);
        drop(held);
        let mut ended = Vec::new();
        for _ in 0..6 {
            ended.push(told.recv().await.unwrap());
        }
        ended.sort_unstable();
        assert_eq!(ended, [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 0, 0), (4, 1, 1), (5, 2, 2)]);
        while counted() != [0, 0, 0] {
            tokio::task::yield_now().await;
        }
        // Whoever has none gets the next.
        let (one, two) = (threads.place(), threads.place());
        drop(one);
        let three = threads.place();
        assert_eq!((two.number, three.number), (1, 0));
    }

    #[tokio::test]
    async fn streams_of_one_connection_are_dealt_out() {
        let threads = threads(3);
        let (tell, mut told) = mpsc::unbounded_channel();
        threads.place().run(async move |executor| {
            for _ in 0..3 {
                let tell = tell.clone();
                executor.execute(async move { tell.send(here()).unwrap() });
            }
        });
        let mut seen = BTreeSet::new();
        while let Some(thread) = told.recv().await {
            seen.insert(thread);
        }
        assert_eq!(seen, BTreeSet::from([0, 1, 2]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_is_stuck_once_it_has_not_answered_for_long_and_busy_before() {
        let threads = threads(2);
        let signs_of_life = threads.signs_of_life();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (began, begun) = oneshot::channel();
        threads.place().run(async move |_| {
            began.send(()).unwrap();
            // It blocks the thread, as nothing on a request's way may.
            let _released = held.recv();
        });
        begun.await.unwrap();
        assert!(signs_of_life.stuck().await.is_empty(), "it may be busy");
        // The clock of this test goes on by itself while other threads work: the other one has answered by now.
        let (_, mut given) = threads.threads[1].sign_of_life();
        given.wait_for(|given| *given).await.unwrap();
        tokio::time::advance(STUCK).await;
        assert_eq!(signs_of_life.stuck().await, ["semel-core-0"]);
        drop(release);
        while !signs_of_life.stuck().await.is_empty() {
            thread::yield_now();
        }
    }

    #[tokio::test]
    async fn what_runs_ends_with_the_threads() {
        let threads = threads(1);
        let (held, hold) = oneshot::channel::<()>();
        threads.place().run(async move |_| {
            let _held = held;
            std::future::pending().await
        });
        drop(threads);
        assert!(hold.await.is_err());
    }
}
