//! The readers: threads with a connection each. In WAL mode readers and the writer do not block each other.

use crate::clock::StoreClock;
use crate::error::{Fault, unavailable};
use crate::statements::{self, clock_row};
use bytes::Bytes;
use rusqlite::Connection;
use semel::clock::Told;
use semel::{Now, StoreError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// What goes through the readers' channel.
pub(crate) enum ToReader {
    /// Read this.
    Read(Box<dyn FnOnce(&Reader) + Send>),
    /// Read what is queued, then stop.
    Stop,
}

/// The end at which what was found comes.
pub(crate) type Found<T> = oneshot::Receiver<Result<T, StoreError>>;

/// How many readings may wait. Beyond that, callers wait for a place.
pub(crate) const QUEUE: usize = 1_024;

/// The queue that all readers share: an idle one takes the next job.
pub(crate) type ReadQueue = Arc<Mutex<mpsc::Receiver<ToReader>>>;

/// One reader's side of a store.
pub(crate) struct Reader {
    pub(crate) conn: Connection,
    pub(crate) clock: Arc<StoreClock>,
}

impl Reader {
    /// Works until every handle is gone or one says stop, and what was queued is read.
    pub(crate) fn run(&self, queue: &ReadQueue) {
        loop {
            // A channel is whole at any time: a panic elsewhere leaves nothing half done.
            let mut taking = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let message = taking.blocking_recv();
            match message {
                Some(ToReader::Read(read)) => {
                    drop(taking);
                    // A panic of the application's closure costs its caller the answer; the reader thread lives on.
                    if catch_unwind(AssertUnwindSafe(|| read(self))).is_err() {
                        tracing::error!("the read was abandoned: the application's closure panicked");
                    }
                }
                Some(ToReader::Stop) => taking.close(),
                None => return,
            }
        }
    }

    /// One view of the file, and what time it was then.
    fn view<T>(&self, read: impl FnOnce(&Connection, Now) -> Result<T, Fault>) -> Result<T, Fault> {
        let view = self.conn.unchecked_transaction()?;
        let now = self.clock.judge(clock_row(&view)?)?.now;
        let found = read(&view, now)?;
        view.finish()?;
        Ok(found)
    }
}

/// A look at the clock, which nothing that is wrong with it stops.
pub(crate) fn looking() -> (ToReader, Found<Told>) {
    timeless(|reader| Ok(reader.clock.look(clock_row(&reader.conn)?)))
}

/// What is kept under a name, whatever time it is.
pub(crate) fn recalling(name: String) -> (ToReader, Found<Option<Bytes>>) {
    timeless(move |reader| statements::recall(&reader.conn, &name))
}

fn timeless<T: Send + 'static>(
    read: impl FnOnce(&Reader) -> Result<T, Fault> + Send + 'static,
) -> (ToReader, Found<T>) {
    let (answer, waiting) = oneshot::channel();
    let work = move |reader: &Reader| {
        let _gone = answer.send(read(reader).map_err(failed));
    };
    (ToReader::Read(Box::new(work)), waiting)
}

fn failed(fault: Fault) -> StoreError {
    match fault {
        Fault::Job(error) => error,
        Fault::Group(error) => unavailable(&error),
    }
}

/// A reading, and the end at which its answer comes.
pub(crate) fn reading<T: Send + 'static>(
    read: impl FnOnce(&Connection, Now) -> Result<T, Fault> + Send + 'static,
) -> (ToReader, Found<T>) {
    let (answer, waiting) = oneshot::channel();
    let work = move |reader: &Reader| {
        if answer.is_closed() {
            return;
        }
        let _gone = answer.send(reader.view(read).map_err(failed));
    };
    (ToReader::Read(Box::new(work)), waiting)
}
