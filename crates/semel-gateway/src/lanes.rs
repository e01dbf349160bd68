//! The threads that serve connections: one for each core, each with a runtime of its own.
//!
//! A connection stays on one thread, with its requests, what is executed for them and the connections to the service that they use. What
//! all share is the store, whose batches are for requests of any lane, and counts. Nothing on a request's way may take long without
//! waiting for something: whoever shares the thread waits for it.
//!
//! Streams of one HTTP/2 connection are dealt out to all threads: a proxy in front may send everything over one.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::thread;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// As many as there are cores for us.
static COUNT: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));

thread_local! {
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// How many lanes there are.
pub(crate) fn count() -> usize {
    *COUNT
}

/// The number of the lane that this runs on, below [`count`]. A thread that is none counts as the first.
pub(crate) fn here() -> usize {
    HERE.get()
}

/// The threads. They end, with everything on them, when this is dropped.
pub(crate) struct Lanes {
    lanes: Arc<[Lane]>,
    _ends: Vec<oneshot::Sender<()>>,
}

struct Lane {
    runtime: Handle,
    connections: AtomicUsize,
}

impl Lanes {
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start() -> io::Result<Self> {
        let started = (0..count()).map(Lane::start).collect::<io::Result<Vec<_>>>()?;
        let (lanes, ends): (Vec<_>, _) = started.into_iter().unzip();
        Ok(Self { lanes: lanes.into(), _ends: ends })
    }

    /// A place for a connection, where there are fewest.
    pub(crate) fn place(&self) -> Place {
        let counted = self.lanes.iter().map(|lane| lane.connections.load(Relaxed));
        let number =
            counted.enumerate().min_by_key(|(_, connections)| *connections).map_or(0, |(number, _)| number);
        self.lanes[number].connections.fetch_add(1, Relaxed);
        Place { lanes: Arc::clone(&self.lanes), number }
    }
}

impl Lane {
    fn start(number: usize) -> io::Result<(Self, oneshot::Sender<()>)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new().name(format!("semel-lane-{number}")).spawn(move || {
            HERE.set(number);
            runtime.block_on(async { drop(ended.await) });
            // What blocks meanwhile, for a name to be looked up say, is not waited for.
            runtime.shutdown_background();
        })?;
        Ok((Self { runtime: handle, connections: AtomicUsize::new(0) }, end))
    }
}

/// A connection's place on a lane, until it is dropped.
pub(crate) struct Place {
    lanes: Arc<[Lane]>,
    number: usize,
}

impl Place {
    /// Runs the connection there.
    pub(crate) fn run<F>(self, connection: impl FnOnce(Dealer) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let dealer = Dealer { lanes: Arc::clone(&self.lanes), next: Arc::new(AtomicUsize::new(self.number)) };
        self.lanes[self.number].runtime.clone().spawn(async move {
            connection(dealer).await;
            drop(self);
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.lanes[self.number].connections.fetch_sub(1, Relaxed);
    }
}

/// Deals out the streams of one connection, its own lane first.
#[derive(Clone)]
pub(crate) struct Dealer {
    lanes: Arc<[Lane]>,
    next: Arc<AtomicUsize>,
}

impl<F> hyper::rt::Executor<F> for Dealer
where
    F: Future<Output: Send> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let number = self.next.fetch_add(1, Relaxed) % self.lanes.len();
        self.lanes[number].runtime.spawn(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::rt::Executor as _;
    use std::collections::BTreeSet;
    use tokio::sync::mpsc;

    /// Lanes, however many cores this machine has.
    fn lanes(count: usize) -> Lanes {
        let (lanes, ends): (Vec<_>, _) = (0..count).map(|number| Lane::start(number).unwrap()).unzip();
        Lanes { lanes: lanes.into(), _ends: ends }
    }

    #[tokio::test]
    async fn a_connection_goes_where_there_are_fewest_and_stays_there() {
        let lanes = lanes(3);
        let (tell, mut told) = mpsc::unbounded_channel();
        let held: Vec<_> = (0..6)
            .map(|connection| {
                let (tell, (hold, held)) = (tell.clone(), oneshot::channel::<()>());
                lanes.place().run(async move |_| {
                    let begun = here();
                    drop(held.await);
                    tell.send((connection, begun, here())).unwrap();
                });
                Some(hold)
            })
            .collect();
        let counted = || lanes.lanes.iter().map(|lane| lane.connections.load(Relaxed)).collect::<Vec<_>>();
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
        let (one, two) = (lanes.place(), lanes.place());
        drop(one);
        let three = lanes.place();
        assert_eq!((two.number, three.number), (1, 0));
    }

    #[tokio::test]
    async fn streams_of_one_connection_are_dealt_out() {
        let lanes = lanes(3);
        let (tell, mut told) = mpsc::unbounded_channel();
        lanes.place().run(async move |dealer| {
            for _ in 0..3 {
                let tell = tell.clone();
                dealer.execute(async move { tell.send(here()).unwrap() });
            }
        });
        let mut seen = BTreeSet::new();
        while let Some(lane) = told.recv().await {
            seen.insert(lane);
        }
        assert_eq!(seen, BTreeSet::from([0, 1, 2]));
    }

    #[tokio::test]
    async fn what_runs_ends_with_the_lanes() {
        let lanes = lanes(1);
        let (held, hold) = oneshot::channel::<()>();
        lanes.place().run(async move |_| {
            let _held = held;
            std::future::pending().await
        });
        drop(lanes);
        assert!(hold.await.is_err());
    }
}
